#include "transport/side.hpp"

#include <fmt/format.h>
#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "unshuffle/core/error.hpp"

namespace unshuffle::transport {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;  // clang 14 does not deduce it

using Array = Eigen::ArrayXd;

// The ball needs r_i with  a log r_i + λ₁ + 2λ₃(r_i - 1) = b_i,  Σμr = 1  and  Σμ(r-1)² ≤ spread (λ₃ = 0 when slack).
// With b = ℓ and a = 1 + ε₁/ε this is the scaling step, with b = -u and a = ε₁/ε the response to a potential.
//
// For fixed multipliers x = log r solves  a x + 2λ₃ eˣ = c,  a convex increasing equation: Newton converges from any
// start to the right of the root, and one step from the left lands there. `x` is where to start from.
void refine_log_ratio(const Array& b, double a, Multipliers lambda, Array& x) {
  const Array c = b - lambda.mass + 2 * lambda.ball;
  if (lambda.ball == 0) {
    x = c / a;
    return;
  }
  // Two upper bounds of the root (for x ≥ 0 the second holds).
  const Array bound = (c / a).min((c.max(2 * lambda.ball) / (2 * lambda.ball)).log());
  Array grown, step;
  x = x.min(bound);
  for (int iteration = 0; iteration < 60; ++iteration) {
    grown = 2 * lambda.ball * x.exp();
    step = (a * x + grown - c) / (a + grown);
    x = (x - step).min(bound);
    if ((step.abs() * (a + grown) <= 4e-16 * (c.abs() + grown)).all()) break;
  }
}

Array log_ratio_at(const Array& b, double a, Multipliers lambda) {
  Array x = Array::Constant(b.size(), std::numeric_limits<double>::infinity());
  refine_log_ratio(b, a, lambda, x);
  return x;
}

// Σμr decreases in λ₁, from at least one where λ₁ = min b (all r ≥ 1) to at most one where λ₁ = max b: Newton on
// log Σμr, which is exact in one step when λ₃ = 0, inside this bracket.
void solve_mass(const Array& weights, const Array& b, double a, Multipliers& lambda, Array& x) {
  constexpr double underflown = 1e-280;
  double low = b.minCoeff(), high = b.maxCoeff();
  const double rounding = 4e-16 * std::max(std::abs(low), std::abs(high));
  lambda.mass = std::clamp(lambda.mass, low, high);
  Array r;
  for (int iteration = 0; iteration < 200; ++iteration) {
    refine_log_ratio(b, a, lambda, x);
    r = x.exp();
    const double total = (weights * r).sum();
    if (std::abs(total - 1) <= 2e-15) break;
    (total > 1 ? low : high) = lambda.mass;
    const double slope = (weights * r / (a + 2 * lambda.ball * r)).sum();
    double next = total > underflown ? lambda.mass + std::log(total) * total / slope : low;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    const double step = next - lambda.mass;
    if (std::abs(step) <= rounding) break;
    lambda.mass = next;
  }
}

Array solve_ball(const Array& weights, const Array& b, double a, double spread, Multipliers& lambda) {
  auto excess = [&](const Array& x) { return (weights * (x.exp() - 1).square()).sum() - spread; };
  double largest = b.maxCoeff();
  lambda = {a * std::log((weights * ((b - largest) / a).exp()).sum()) + largest, 0};
  Array x = log_ratio_at(b, a, lambda);
  if (excess(x) <= 0) return x;

  // Safeguarded Newton on log(Σμ(r-1)²) = log spread in log λ₃; d r/dλ₃ follows from the two constraints.
  double low = 0, high = std::numeric_limits<double>::infinity();
  const double scale = (b - lambda.mass).abs().maxCoeff(), size = b.abs().maxCoeff();
  lambda.ball = std::max(scale, 1e-8) / std::sqrt(spread);
  for (int iteration = 0; iteration < 200; ++iteration) {
    solve_mass(weights, b, a, lambda, x);
    const Array r = x.exp();
    const double distance = (weights * (r - 1).square()).sum();
    const Array inverse = weights * r / (a + 2 * lambda.ball * r);  // μ/D
    const double rounding = 1e-14 * spread + 1e-15 * size * (inverse * (r - 1).abs()).sum();
    if (std::abs(distance - spread) <= rounding) break;
    (distance > spread ? low : high) = lambda.ball;
    const double mean = (inverse * (r - 1)).sum() / inverse.sum();
    const double slope = -4 * (inverse * (r - 1 - mean) * (r - 1)).sum();  // d distance / dλ₃ along Σμr = 1
    // Rows given up completely leave a plateau where Newton's step is erratic; bounded factors lead off it.
    constexpr double largest_factor = 16;
    const double newton = std::exp(-std::log(distance / spread) * distance / (slope * lambda.ball));
    double next = lambda.ball * std::clamp(newton, 1 / largest_factor, largest_factor);
    if (!(next > low && next < high))
      next = std::isinf(high) ? largest_factor * lambda.ball : low == 0 ? high / largest_factor : std::sqrt(low * high);
    if (std::abs(next - lambda.ball) <= 1e-15 * lambda.ball) break;
    lambda.mass -= 2 * mean * (next - lambda.ball);  // keeps Σμr to first order
    lambda.ball = next;
  }
  return x;
}

// docs/mathematics.md §2.5. Sampled, ratio κ > 1: surplus rows go to a dummy partner, which takes the missing mass,
// κ - r per unit of weight, at a cost that is the same for all; its entropy is
//   R/ε = Σμ [(κ - r) log((κ - r)/(κ - 1)) + r - 1],   so   u = -R'/ε = log((κ - r)/(κ - 1)),
// where r - 1 sums to zero and only makes u = 0 where r = 1. With r = exp(u + ℓ) that is r = κ/(1 + (κ - 1)e^{-ℓ}).
// κ < 1: a row has κ for certain. The rest, r - κ, belongs to unseen rows of the same distribution, which have no
// entropy of their own: their potential is one constant c, and e^u = c + κe^{-ℓ}. With c = 1 - κ, u = 0 where r = 1:
//   r = κ + (1 - κ)e^ℓ,   u = log((1 - κ) r/(r - κ)),   R/ε = Σμ [(r - κ) log((r - κ)/(1 - κ)) - r log r].
// Either way u is bounded, by log(κ/(κ - 1)) above or log(1 - κ) below, which steps of an ascent in u would hit, so
// this side is always the one solved in closed form.
class SampledRows {
 public:
  explicit SampledRows(double ratio) : ratio_(ratio) {}

  [[nodiscard]] Array log_ratio_of_sums(const Array& log_sums) const {
    if (ratio_ > 1) {  // log κ - log(1 + e^x), x = log(κ - 1) - ℓ
      const Array x = std::log(ratio_ - 1) - log_sums;
      return std::log(ratio_) - x.max(0) - (-x.abs()).exp().log1p();
    }
    // log(κ + (1 - κ)e^ℓ), which may be beyond what exp can hold
    const Array x = log_sums + std::log1p(-ratio_) - std::log(ratio_);
    return std::log(ratio_) + x.max(0) + (-x.abs()).exp().log1p();
  }

  /// d(log r) = -k du.
  [[nodiscard]] Array compliance(const Array& r) const {
    return ratio_ > 1 ? Array((ratio_ - r).max(0) / r.max(std::numeric_limits<double>::min()))
                      : Array((r - ratio_).max(0) / ratio_);
  }

  [[nodiscard]] double penalty(const Array& log_ratio, const Array& weights) const {
    const Array r = log_ratio.exp(), beyond = (r - ratio_).abs().max(std::numeric_limits<double>::min());
    const Array entropy = beyond * (beyond / std::abs(ratio_ - 1)).log();
    return (weights * (entropy + (ratio_ > 1 ? Array(r - 1) : Array(-r * log_ratio)))).sum();
  }

 private:
  double ratio_;
};

double strength_in_epsilon(const KullbackLeibler& kl, double epsilon) { return kl.strength / epsilon; }

}  // namespace

void validate(const MarginalPolicy& policy) {
  std::visit(Overload{[](const Exact&) {}, [](const Free&) {},
                      [](const Ball& ball) {
                        if (!(ball.spread > 0) || !std::isfinite(ball.spread))
                          throw InvalidInput(fmt::format("ball spread = {} must be finite and > 0", ball.spread));
                        if (!(ball.entropy > 0) || !std::isfinite(ball.entropy))
                          throw InvalidInput(fmt::format("ball entropy = {} must be finite and > 0", ball.entropy));
                      },
                      [](const KullbackLeibler& kl) {
                        if (!(kl.strength > 0) || !std::isfinite(kl.strength))
                          throw InvalidInput(fmt::format("KL strength = {} must be finite and > 0", kl.strength));
                      },
                      [](const Sampled& sampled) {
                        if (!(sampled.ratio >= 0) || !std::isfinite(sampled.ratio))
                          throw InvalidInput(fmt::format("sampled ratio = {} must be finite and >= 0", sampled.ratio));
                      }},
             policy);
}

namespace {

const Sampled* as_sampled(const MarginalPolicy& policy) { return std::get_if<Sampled>(&policy); }

}  // namespace

void validate(const MarginalPolicy& rows, const MarginalPolicy& columns) {
  validate(rows);
  validate(columns);
  const auto* left = as_sampled(rows);
  const auto* right = as_sampled(columns);
  const bool by_size = left != nullptr && right != nullptr && left->ratio == 0 && right->ratio == 0;
  const auto exact = [](const MarginalPolicy& policy) { return std::holds_alternative<Exact>(policy); };
  if (!by_size && ((left != nullptr && !exact(columns)) || (right != nullptr && !exact(rows))))
    throw InvalidInput("sampled sums on one side need exact sums on the other");
}

// With equally many rows on both sides, all have a partner.
MarginalPolicies of_sizes(MarginalPolicy rows, MarginalPolicy columns, Index n, Index m) {
  if (as_sampled(rows) != nullptr && as_sampled(columns) != nullptr) (n > m ? columns : rows) = Exact{};
  const auto fill = [](MarginalPolicy& policy, Index own, Index other) {
    const auto* sampled = as_sampled(policy);
    if (sampled == nullptr) return;
    const double ratio = sampled->ratio > 0 ? sampled->ratio : static_cast<double>(own) / static_cast<double>(other);
    policy = ratio == 1 ? MarginalPolicy(Exact{}) : Sampled{ratio};
  };
  fill(rows, n, m);
  fill(columns, m, n);
  return {rows, columns};
}

Vector Curvature::apply(const VectorRef& x) const {
  Vector y = diagonal.cwiseProduct(x);
  if (border.cols() > 0) y -= border * core.ldlt().solve(border.transpose() * x);
  return y;
}

SideTerms::SideTerms(MarginalPolicy policy, Vector weights, double epsilon, Vector own_cost)
    : policy_(policy), weights_(std::move(weights)), own_cost_(std::move(own_cost)), epsilon_(epsilon) {
  validate(policy_);
}

bool SideTerms::fixes_mass() const {
  return std::holds_alternative<Exact>(policy_) || std::holds_alternative<Ball>(policy_);
}

Ratio SideTerms::scale(const VectorRef& log_sums, const VectorRef& base) const {
  Ratio answer;
  Vector sums = log_sums - base;
  if (own_cost_.size() > 0) sums -= own_cost_;
  std::visit(
      Overload{[&](const Exact&) { answer.log_ratio = Vector::Zero(log_sums.size()); },
               [&](const Free&) { answer.log_ratio = sums; },
               [&](const KullbackLeibler& kl) { answer.log_ratio = sums / (1 + strength_in_epsilon(kl, epsilon_)); },
               [&](const Sampled& sampled) {
                 answer.log_ratio = SampledRows(sampled.ratio).log_ratio_of_sums(sums.array());
               },
               [&](const Ball& ball) {
                 answer.log_ratio =
                     solve_ball(weights_.array(), sums.array(), 1 + ball.entropy, ball.spread, answer.multipliers);
               }},
      policy_);
  set_dual(answer, answer.log_ratio - log_sums, base);
  return answer;
}

Ratio SideTerms::respond(const VectorRef& potential, const VectorRef& base) const {
  Ratio answer;
  std::visit(Overload{[&](const Exact&) { answer.log_ratio = Vector::Zero(potential.size()); },
                      [&](const Free&) { answer.log_ratio = Vector::Zero(potential.size()); },
                      [&](const KullbackLeibler& kl) {
                        answer.log_ratio = -(potential + base) / strength_in_epsilon(kl, epsilon_);
                      },
                      [](const Sampled&) { throw std::logic_error("sampled sums are not asked by their potential"); },
                      [&](const Ball& ball) {
                        answer.log_ratio = solve_ball(weights_.array(), -(potential + base).array(), ball.entropy,
                                                      ball.spread, answer.multipliers);
                      }},
             policy_);
  set_dual(answer, potential, base);
  return answer;
}

void SideTerms::set_dual(Ratio& answer, const VectorRef& potential, const VectorRef& base) const {
  if (std::holds_alternative<Exact>(policy_)) {
    answer.dual = weights_.dot(potential);
    answer.size = potential.lpNorm<Eigen::Infinity>();
    return;
  }
  const Array total = potential + base, mass = weights_.array() * answer.log_ratio.array().exp();
  answer.dual = (mass * total).sum() + penalty(answer.log_ratio);
  answer.size = total.abs().maxCoeff();
}

Vector SideTerms::extend(const VectorRef& log_sums, const Multipliers& multipliers) const {
  return std::visit(
      Overload{
          [&](const Exact&) -> Vector { return Vector::Zero(log_sums.size()); },
          [&](const Free&) -> Vector { return log_sums; },
          [&](const KullbackLeibler& kl) -> Vector { return log_sums / (1 + strength_in_epsilon(kl, epsilon_)); },
          [&](const Sampled& sampled) -> Vector {
            return SampledRows(sampled.ratio).log_ratio_of_sums(log_sums.array());
          },
          [&](const Ball& ball) -> Vector { return log_ratio_at(log_sums.array(), 1 + ball.entropy, multipliers); }},
      policy_);
}

Vector SideTerms::compliance(const VectorRef& log_ratio, const Multipliers& multipliers) const {
  const Index size = log_ratio.size();
  return std::visit(Overload{[&](const Exact&) -> Vector { return Vector::Zero(size); },
                             [&](const Free&) -> Vector { return Vector::Zero(size); },
                             [&](const KullbackLeibler& kl) -> Vector {
                               return Vector::Constant(size, 1 / strength_in_epsilon(kl, epsilon_));
                             },
                             [&](const Sampled& sampled) -> Vector {
                               return SampledRows(sampled.ratio).compliance(log_ratio.array().exp());
                             },
                             [&](const Ball& ball) -> Vector {  // 1/(rD), D = e₁/r + 2λ₃
                               return (ball.entropy + 2 * multipliers.ball * log_ratio.array().exp()).inverse();
                             }},
                    policy_);
}

Matrix SideTerms::unit_border(const VectorRef& log_ratio, const Multipliers& multipliers) const {
  if (!std::holds_alternative<Ball>(policy_)) return Matrix(log_ratio.size(), 0);
  Matrix b = Matrix::Ones(log_ratio.size(), multipliers.ball > 0 ? 2 : 1);
  if (multipliers.ball > 0) b.col(1) = log_ratio.array().exp() - 1;
  return b;
}

Curvature SideTerms::curvature(const VectorRef& log_ratio, const Multipliers& multipliers) const {
  Curvature m;
  m.diagonal = weights_.array() * log_ratio.array().exp() * compliance(log_ratio, multipliers).array();
  Matrix b = unit_border(log_ratio, multipliers);
  m.border = m.diagonal.asDiagonal() * b;
  m.core = b.transpose() * m.border;
  return m;
}

double SideTerms::penalty(const VectorRef& log_ratio) const {
  double sum = penalty_of_policy(log_ratio);
  if (own_cost_.size() > 0) sum += (weights_.array() * log_ratio.array().exp() * own_cost_.array()).sum();
  return sum;
}

double SideTerms::penalty_of_policy(const VectorRef& log_ratio) const {
  auto relative_entropy = [&] {
    Array r = log_ratio.array().exp();
    return (weights_.array() * (r * log_ratio.array() - r + 1)).sum();
  };
  return std::visit(
      Overload{[](const Exact&) { return 0.0; }, [](const Free&) { return 0.0; },
               [&](const KullbackLeibler& kl) { return strength_in_epsilon(kl, epsilon_) * relative_entropy(); },
               [&](const Ball& ball) { return ball.entropy * relative_entropy(); },
               [&](const Sampled& sampled) {
                 return SampledRows(sampled.ratio).penalty(log_ratio.array(), weights_.array());
               }},
      policy_);
}

}  // namespace unshuffle::transport
