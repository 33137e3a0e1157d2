#include "likelihood/likelihood.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "core/special.hpp"
#include "core/squares.hpp"
#include "likelihood/response_law.hpp"
#include "objective/backend.hpp"
#include "objective/batch.hpp"
#include "starts/starts.hpp"
#include "tables/equal_weights.hpp"

namespace unshuffle {

// Given w, response i is s_π(i) + noise with s = f(·; w), noise N(0, σ²) and π any of the n! permutations, all equally
// likely:
//   p(y) = (1/n!) Σ_π Π_i φ_σ(y_i - s_π(i)) = perm(K)/n!,    K_ij = φ_σ(y_i - s_j) = exp(-C_ij/ε)/√(πε),   ε = 2σ².
// Let Γ be the plan of <C,Γ> + ε KL(Γ | μ⊗ν), and B = nΓ, which is K with rows and columns scaled to sum to one:
// B_ij = n K_ij e^{(ξ_i+ζ_j)/ε} √(πε)/n². As scaling a row scales the permanent,
//   perm(K) = perm(B) · n^n (πε)^{-n/2} exp(-Σ(ξ_i+ζ_i)/ε),   and   n(<C,Γ> + ε KL) = Σ_i ξ_i + Σ_j ζ_j,
// so that, with the entropic value OT = <C,Γ> + ε KL(Γ | μ⊗ν),
//   -log p = n OT/ε + (n/2) log(πε) - log(perm(B) n^n/n!).
// The last term, D = log(perm(B) n^n/n!), lies between 0 (van der Waerden: all B_ij equal) and about n (B a
// permutation). Where every row has many partners, D = -½ Σ log(1-λ²) over the singular values λ < 1 of B. There B
// smooths by a Gaussian of variance σ², so λ² = exp(-σ²k²) for waves k, of which a stretch of length L has L dk/2π:
//   D = -(L/4π) ∫ log(1 - exp(-σ²k²)) dk = L ζ(3/2)/(4√π σ) = κ/√ε,     κ = L ζ(3/2) √2/(4√π).
// It hardly changes with w, as every w that fits gives s about the same distribution, but it does with ε, which without
// it would come out too large. With L the range that holds all but a few of the responses, and kept below n,
//   N(w, ε) = n OT/ε + (n/2) log(πε) - D(ε),      D = n x/(1+x),   x = κ/(n√ε).
// The remaining error is removed by simulation (calibrated()). By the envelope theorem the plan need not be
// differentiated:
//   ∂N/∂w = (n/ε) Σ Γ_ij ∂C_ij/∂w,     ∂N/∂(log ε) = -n<C,Γ>/ε + n/2 - dD/d(log ε).
// Prior weights leave a row with fewer possible partners than the m features. With k of them, points lie m/k times as
// far apart and x is m/k times as large; in the limit of one partner D no longer changes with ε, as it should. Groups
// add up; o outputs count as n·o numbers and have no D. The evaluator's value is relative to counting measure instead
// of μ⊗ν, which the constant corrects.
//
// Rows without a partner: with n responses and m > n features the sum is over all ways to give every response its own
// feature, of which there are m!/(m-n)!. Adding m-n rows of ones to K makes it a permanent again, perm(K')/m!, and the
// same steps lead to the same formula, where OT omits those rows but keeps their entropy: the feature side is
// transport::Sampled. With m < n, responses without a feature follow the law q of all responses: the added columns of
// K' are q(y_i), which is equivalent to dividing K by q and adding ones, so the sides are exchanged and n OT/ε becomes
// m OT/ε + Σ log q over the linked responses, less that over all. (With x in the response table and the sorted backend
// q would have to move with w. In that case unseen features are assumed to be like the seen ones, so an added column is
// the mean of the others; that is Sampled, too, but one response far from all features is costly.) Either way B' has as
// many singular values as before, but its rows share their partners with the added ones: with ρ = min(n,m)/max(n,m),
// λ² = ρ exp(-σ²k²), and ζ(3/2) = Li(1) in κ becomes the polylogarithm Li(ρ) of order 3/2. docs/mathematics.md §5.
namespace {

/// Σ ρᵏ/k^{3/2} for 0 < ρ ≤ 1, near one by its expansion in -log ρ.
double polylogarithm(double rho) {
  const double x = -std::log(rho);
  double sum = 0;
  if (x > 1) {
    for (int k = 40; k > 0; --k) sum += std::exp(-k * x) / (k * std::sqrt(k));
    return sum;
  }
  static const std::array<double, 20> zeta = [] {  // slow to have
    std::array<double, 20> made{};
    for (std::size_t k = 0; k < made.size(); ++k) made[k] = unshuffle::zeta(1.5 - double(k));
    return made;
  }();
  double power = 1;  // (-x)ᵏ/k!
  for (std::size_t k = 0; k < zeta.size(); power *= -x / double(++k)) sum += zeta[k] * power;
  return sum - 2 * std::sqrt(std::numbers::pi * x);
}

double kappa_of(const Problem& problem, const Block& block) {
  constexpr std::size_t beyond = 10;  // rows at either end that are not counted as part of a dense stretch
  std::vector<double> y;
  for (const Index row : block.response_rows) y.push_back(problem.y(row, 0));
  std::sort(y.begin(), y.end());
  const std::size_t cut = std::min(beyond, y.size() / 10);
  const double range = y[y.size() - 1 - cut] - y[cut];
  const auto [fewer, more] = std::minmax({block.response_rows.size(), block.feature_rows.size()});
  return range * polylogarithm(double(fewer) / double(more)) * std::numbers::sqrt2 / (4 * std::sqrt(std::numbers::pi));
}

/// Effective number of features per response of the block under the prior: exp of the mean entropy of its rows.
double partners_of(const Problem& problem, const Block& block) {
  const auto features = static_cast<double>(block.feature_rows.size());
  if (!problem.has_prior()) return features;
  std::map<Index, Index> response_place, feature_place;
  for (const Index i : block.response_rows) response_place.try_emplace(i, Index(response_place.size()));
  for (const Index j : block.feature_rows) feature_place.try_emplace(j, Index(feature_place.size()));
  Matrix logs = log_weights_of_keys(problem, block.response_rows, block.feature_rows);
  for (const auto& [response_row, feature_row, weight] : problem.prior) {
    const auto i = response_place.find(response_row), j = feature_place.find(feature_row);
    if (i != response_place.end() && j != feature_place.end()) logs(i->second, j->second) += std::log(weight);
  }
  double entropy = 0;
  for (Index i = 0; i < logs.rows(); ++i) {
    const Eigen::ArrayXd share = (logs.row(i).array() - logs.row(i).maxCoeff()).exp().transpose();
    const double total = share.sum();
    // Σ p log p with p = share/total; what underflows to zero has none.
    entropy += std::log(total) - (share * (share + std::numeric_limits<double>::min()).log()).sum() / total;
  }
  return std::exp(entropy / double(logs.rows()));
}

}  // namespace

bool leaves_responses_out(const Problem& problem, const Model& bound, const LikelihoodOptions& options) {
  return problem.x.cols() == 0 || backend_for(problem, bound, options.evaluator.backend) != Backend::sorted;
}

namespace {

EvaluatorOptions plan_of_links(const Problem& problem, const Model& bound, const LikelihoodOptions& options) {
  EvaluatorOptions made = options.evaluator;
  made.objective = Objective::entropic;
  made.epsilon = {.value = 1, .relative = false};
  made.response_side = transport::Exact{};
  made.feature_side = transport::Sampled{};
  if (leaves_responses_out(problem, bound, options)) {
    made.response_side = transport::Sampled{};
    made.log_absence = [law = ResponseLaw(problem.y)](const VectorRef& y) { return law.log_density(y); };
  }
  return made;
}

}  // namespace

LinkLikelihood::LinkLikelihood(const Problem& problem, const Model& bound, LikelihoodOptions options)
    : problem_(problem),
      bound_(bound),
      shape_(options.noise_covariance, problem.outputs()),
      known_epsilon_(2 * options.known_noise_sd * options.known_noise_sd) {
  options.evaluator = plan_of_links(problem, bound, options);
  if (shape_.parameters() > 0) shaped_ = shaped(problem, bound, shape_);
  take_up(blocks_of(problem), std::move(options));
  const double variance = squares_about_mean(problem.y) / double(problem.y.size());
  floor_ = std::log(2e-8 * std::max(variance, std::numeric_limits<double>::min()));
}

// Single pairs have no links to sum over, and the evaluator has them for next to nothing.
void LinkLikelihood::take_up(const std::vector<Block>& blocks, LikelihoodOptions options) {
  const bool even =
      options.entropy && equal_weights(problem_.response_weights) && equal_weights(problem_.feature_weights);
  const Backend backend = backend_for(problem_, bound_, options.evaluator.backend);
  std::vector<Block> exact, planned;
  for (const Block& block : blocks) {
    const auto n = Index(block.response_rows.size()), m = Index(block.feature_rows.size());
    const bool single = n == 1 && m == 1;
    const LinkRule rule = rule_for({.responses = n,
                                    .features = m,
                                    .summable = even && !single && (n <= m || options.evaluator.log_absence),
                                    .binary = false,
                                    .on_a_line = options.entropy && problem_.outputs() == 1,
                                    .plan_held = even && backend == Backend::dense});
    if (!single) sums_.add(rule);
    corrected_ = corrected_ || rule == LinkRule::corrected;
    (rule == LinkRule::exact ? exact : planned).push_back(block);
  }
  const Problem& rows = shaped_.problem ? *shaped_.problem : problem_;
  const Model& model = shaped_.model ? *shaped_.model : bound_;
  // With little noise a plan leaves hardly more open than its error, of which the remainder takes the logarithm: at
  // 1e-9 it was off by 56 nats for 60 rows with a noise of 0.01.
  if (corrected_) options.evaluator.tolerance = std::min(options.evaluator.tolerance, 1e-11);
  if (!planned.empty()) {
    if (!exact.empty()) {
      std::vector<Index> responses, features;
      for (const Block& block : planned) {
        responses.insert(responses.end(), block.response_rows.begin(), block.response_rows.end());
        features.insert(features.end(), block.feature_rows.begin(), block.feature_rows.end());
      }
      planned_ = std::make_unique<const Problem>(some_rows(rows, responses, features));
    }
    evaluator_.emplace(planned_ ? *planned_ : rows, model, options.evaluator);
    take_up_planned(blocks_of(planned_ ? *planned_ : rows), options);
  }
  groups_ = std::make_unique<ExactGroups>(rows, model, std::move(exact), options.evaluator.log_absence);
}

void LinkLikelihood::take_up_planned(const std::vector<Block>& blocks, const LikelihoodOptions& options) {
  const auto entropy = [](const Vector& weights, const std::vector<Index>& rows) {
    const Vector some = weights(rows);
    const double total = some.sum();
    return -some.unaryExpr([&](double a) { return a > 0 ? a / total * std::log(a / total) : 0.0; }).sum();
  };
  const Problem& problem = planned_ ? *planned_ : problem_;
  const auto rows = static_cast<double>(problem.responses());
  const EvaluatorOptions& used = evaluator_->options();
  for (const Block& block : blocks) {
    const double linked = std::min(1.0, double(block.feature_rows.size()) / double(block.response_rows.size()));
    const double links = rows * block.share * (used.log_absence ? linked : 1.0);
    numbers_ += links * double(problem.outputs());
    if (used.log_absence && linked < 1) {
      for (const Index row : block.response_rows) constant_ -= used.log_absence(problem.y.row(row).transpose());
    }
    if (problem.outputs() == 1 && options.entropy) {
      const double spaced = double(block.feature_rows.size()) / partners_of(problem, block);
      const double kappa = spaced * kappa_of(problem, block);
      if (kappa > 0) blocks_.push_back({rows * block.share * linked, kappa});
    }
    constant_ += links * (1 + entropy(problem.response_weights, block.response_rows) +
                          entropy(problem.feature_weights, block.feature_rows));
  }
}

bool LinkLikelihood::has_hessian() const {
  return shape_.parameters() == 0 && groups_->has_hessian() &&
         (!evaluator_ || evaluator_->backend() == Backend::sorted);
}

double LinkLikelihood::epsilon_at(double log_epsilon) const {
  return known_epsilon_or(std::exp(std::max(log_epsilon, floor_)));
}

// D and its derivative in log ε; x falls by half a unit of log x per unit of log ε.
std::array<double, 2> LinkLikelihood::link_entropy(double epsilon) const {
  std::array<double, 2> sum{};
  for (const auto& [rows, kappa] : blocks_) {
    const double x = kappa / (rows * std::sqrt(epsilon));
    const double once = 1 / (1 + x);
    sum[0] += rows * x * once;
    sum[1] -= 0.5 * rows * x * once * once;
  }
  return sum;
}

// D of plans held in memory; in ε it changes as it would if all costs fell in proportion.
void LinkLikelihood::add_remainder(const Vector& w, Sample& sum) {
  const PlanSlopes all = evaluator_->over_plans(w, [](const Matrix& plan) -> PlanTerm {
    PlanRemainder here = remainder_of_plan(plan);
    return {here.value, std::move(here.slope)};
  });
  sum.value -= all.value;
  sum.gradient.head(w.size()) -= all.gradient;
  sum.gradient(w.size()) -= all.by_log_epsilon;
}

void LinkLikelihood::add_plan(const Vector& w, double log_epsilon, bool with_hessian, bool centred, Sample& sum) {
  constexpr double step = 1e-3;  // of log ε
  const Index p = w.size();
  const auto gradient_at = [&](double by, bool hessian, Sample& here) {
    const double epsilon = epsilon_at(log_epsilon + by);
    evaluator_->set_epsilon(epsilon);
    const Evaluation found = evaluator_->evaluate(w, hessian);
    const std::array<double, 2> links = link_entropy(epsilon);
    here.value =
        found.objective / epsilon + constant_ + 0.5 * numbers_ * std::log(std::numbers::pi * epsilon) - links[0];
    here.gradient.resize(p + 1);
    here.gradient << found.gradient / epsilon, 0.5 * numbers_ - found.transport_cost / epsilon - links[1];
    if (hessian) here.hessian = found.hessian / epsilon;
    if (corrected_) add_remainder(w, here);
  };
  Sample here, above, below;
  if (with_hessian && known_epsilon_ == 0) gradient_at(step, false, above);
  if (with_hessian && known_epsilon_ == 0 && centred) gradient_at(-step, false, below);
  gradient_at(0, with_hessian, here);
  sum.value += here.value;
  sum.gradient += here.gradient;
  if (!with_hessian) return;
  sum.hessian.topLeftCorner(p, p) += here.hessian;
  if (known_epsilon_ > 0) return;
  const Vector column = centred ? Vector((above.gradient - below.gradient) / (2 * step))
                                : Vector((above.gradient - here.gradient) / step);
  sum.hessian.col(p).head(p) += column.head(p);
  sum.hessian.row(p).head(p) += column.head(p).transpose();
  sum.hessian(p, p) += column(p);
}

/// θ of the parts is (w, τ), log ε; outside it is (w, log ε, τ).
Sample LinkLikelihood::sum_at(const Vector& theta, bool with_hessian, bool centred) {
  const Index p = bound_.parameters(), shapes = shape_.parameters();
  const double log_epsilon = theta(p);
  Vector inner(p + shapes);
  inner << theta.head(p), theta.tail(shapes);
  Sample sum = groups_->at(inner, epsilon_at(log_epsilon), with_hessian);
  if (evaluator_) add_plan(inner, log_epsilon, with_hessian, centred, sum);
  ++evaluations_;
  if (!epsilon_counts(log_epsilon)) {
    sum.gradient(p + shapes) = 0;
    if (with_hessian) {
      sum.hessian.row(p).setZero();
      sum.hessian.col(p).setZero();
      sum.hessian(p, p) = 1;
    }
  }
  Vector outer(p + 1 + shapes);
  outer << sum.gradient.head(p), sum.gradient(p + shapes), sum.gradient.segment(p, shapes);
  sum.gradient = outer;
  if (tilt_.size() > 0) {
    sum.value -= tilt_.dot(theta);
    sum.gradient -= tilt_;
  }
  return sum;
}

Sample LinkLikelihood::at(const Vector& theta, bool with_hessian) { return sum_at(theta, with_hessian, false); }

Matrix LinkLikelihood::information(const Vector& theta) {
  return has_hessian() ? sum_at(theta, true, true).hessian : information_by_differences(theta);
}

Matrix LinkLikelihood::noise_covariance(const Optimum& at) const {
  const Index o = problem_.outputs();
  const Vector tau = at.noise_shape.size() > 0 ? at.noise_shape : Vector(Vector::Zero(shape_.parameters()));
  const Matrix root = shape_.transform(tau).triangularView<Eigen::Lower>().solve(Matrix::Identity(o, o));
  return 0.5 * at.epsilon * root * root.transpose();
}

Vector LinkLikelihood::theta_from(const Optimum& at) const {
  const Index p = bound_.parameters(), shapes = shape_.parameters();
  Vector made = Vector::Zero(p + 1 + shapes);
  made.head(p) = at.parameters;
  made(p) = std::log(known_epsilon_or(at.epsilon));
  if (at.noise_shape.size() > 0) made.tail(shapes) = at.noise_shape;
  return made;
}

// Steps of a twentieth of the noise in the predictions: well above the rounding error of gradients, well below the
// scale of curvature.
Matrix LinkLikelihood::information_by_differences(const Vector& theta) {
  const Index p = bound_.parameters();
  const double spread = std::sqrt(squares_about_mean(problem_.y) / double(problem_.y.size()));
  const double noise = std::sqrt(epsilon_at(theta(p)) / 2);
  Vector step = 0.05 * noise / spread * units_at(theta);
  step(p) = 1e-3;
  Matrix hessian = Matrix::Identity(theta.size(), theta.size());
  for (Index k = 0; k < theta.size(); ++k) {
    if (k == p && known_epsilon_ > 0) continue;
    Vector above = theta, below = theta;
    above(k) += step(k);
    below(k) -= step(k);
    hessian.col(k) = (at(above, false).gradient - at(below, false).gradient) / (2 * step(k));
  }
  return 0.5 * (hessian + hessian.transpose());
}

Vector Optimum::theta() const {
  Vector made(parameters.size() + 1 + noise_shape.size());
  made << parameters, std::log(epsilon), noise_shape;
  return made;
}

/// One step of a parameter changes predictions, transformed, about as much as y varies.
Vector LinkLikelihood::units_at(const Vector& theta) const {
  const Index p = bound_.parameters(), shapes = shape_.parameters();
  Vector inner(p + shapes), units = Vector::Ones(theta.size());
  inner << theta.head(p), theta.tail(shapes);
  const Vector steps =
      shaped_.model ? natural_steps(*shaped_.problem, *shaped_.model, inner) : natural_steps(problem_, bound_, inner);
  units.head(p) = steps.head(p);
  units.tail(shapes) = steps.tail(shapes);
  return units;
}

Optimum LinkLikelihood::most_likely_near(const Optimum& from, int max_iterations,
                                         const std::function<bool()>& keep_going) {
  const Index p = from.parameters.size();
  const Vector origin = theta_from(from), unit = units_at(origin);
  const SmoothFunction f = [&](const Vector& u, bool with_hessian) {
    Sample sample = at(origin + unit.cwiseProduct(u), with_hessian);
    sample.gradient.array() *= unit.array();
    if (with_hessian) sample.hessian = unit.asDiagonal() * sample.hessian * unit.asDiagonal();
    return sample;
  };
  StopRule stop;
  stop.max_iterations = max_iterations;
  stop.gradient_tolerance = 1e-6 * double(problem_.responses());
  stop.noise_floor = 1e-6;  // nats: with little noise the plan's rounding is multiplied by 1/ε
  const Watch watch = [&](int, const Sample&, double) { return !keep_going || keep_going(); };
  const Vector start = Vector::Zero(origin.size());
  const Minimum found = has_hessian() ? trust_region(f, start, stop, watch) : lbfgs(f, start, stop, watch);
  const Vector theta = origin + unit.cwiseProduct(found.at);
  return {theta.head(p),    std::exp(theta(p)), theta.tail(theta.size() - p - 1), found.value, found.converged,
          found.iterations, found.message};
}

}  // namespace unshuffle
