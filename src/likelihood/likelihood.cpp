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
#include "starts/starts.hpp"

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

LinkLikelihood::LinkLikelihood(const Problem& problem, const Model& bound, LikelihoodOptions options)
    : problem_(problem),
      bound_(bound),
      evaluator_(problem, bound,
                 [&] {
                   options.evaluator.objective = Objective::entropic;
                   options.evaluator.epsilon = {.value = 1, .relative = false};
                   options.evaluator.response_side = transport::Exact{};
                   options.evaluator.feature_side = transport::Sampled{};
                   if (leaves_responses_out(problem, bound, options)) {
                     options.evaluator.response_side = transport::Sampled{};
                     options.evaluator.log_absence = [law = ResponseLaw(problem.y)](const VectorRef& y) {
                       return law.log_density(y);
                     };
                   }
                   return options.evaluator;
                 }()),
      known_epsilon_(2 * options.known_noise_sd * options.known_noise_sd) {
  const auto entropy = [](const Vector& weights, const std::vector<Index>& rows) {
    const Vector some = weights(rows);
    const double total = some.sum();
    return -some.unaryExpr([&](double a) { return a > 0 ? a / total * std::log(a / total) : 0.0; }).sum();
  };
  const auto rows = static_cast<double>(problem.responses());
  const EvaluatorOptions& used = evaluator_.options();
  for (const Block& block : blocks_of(problem)) {
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
  const double variance = squares_about_mean(problem.y) / double(problem.y.size());
  floor_ = std::log(2e-8 * std::max(variance, std::numeric_limits<double>::min()));
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

Sample LinkLikelihood::evaluate(const Vector& w, double log_epsilon, bool with_hessian) {
  const double epsilon = known_epsilon_or(std::exp(std::max(log_epsilon, floor_)));
  const bool epsilon_counts = known_epsilon_ == 0 && log_epsilon >= floor_;
  evaluator_.set_epsilon(epsilon);
  const Evaluation here = evaluator_.evaluate(w, with_hessian);
  ++evaluations_;
  Sample sample;
  const std::array<double, 2> links = link_entropy(epsilon);
  sample.value =
      here.objective / epsilon + constant_ + 0.5 * numbers_ * std::log(std::numbers::pi * epsilon) - links[0];
  sample.gradient.resize(w.size() + 1);
  sample.gradient.head(w.size()) = here.gradient / epsilon;
  sample.gradient(w.size()) = epsilon_counts ? 0.5 * numbers_ - here.transport_cost / epsilon - links[1] : 0.0;
  if (tilt_.size() > 0) {
    Vector theta(w.size() + 1);
    theta << w, log_epsilon;
    sample.value -= tilt_.dot(theta);
    sample.gradient -= tilt_;
  }
  if (with_hessian) {
    sample.hessian = Matrix::Identity(w.size() + 1, w.size() + 1);
    sample.hessian.topLeftCorner(w.size(), w.size()) = here.hessian / epsilon;
  }
  return sample;
}

namespace {

constexpr double log_epsilon_step = 1e-3;

void set_last_column(Matrix& hessian, const Vector& column) {
  const Index last = hessian.rows() - 1;
  hessian.col(last) = column;
  hessian.row(last) = column;
}

}  // namespace

Sample LinkLikelihood::at(const Vector& theta, bool with_hessian) {
  const Index p = theta.size() - 1;
  const Vector w = theta.head(p);
  if (!with_hessian || known_epsilon_ > 0) return evaluate(w, theta(p), with_hessian);
  const Sample beyond = evaluate(w, theta(p) + log_epsilon_step, false);
  Sample here = evaluate(w, theta(p), true);
  set_last_column(here.hessian, (beyond.gradient - here.gradient) / log_epsilon_step);
  return here;
}

Matrix LinkLikelihood::information(const Vector& theta) {
  const Index p = theta.size() - 1;
  const Vector w = theta.head(p);
  if (!has_hessian()) return information_by_differences(theta);
  if (known_epsilon_ > 0) return evaluate(w, theta(p), true).hessian;
  const Sample above = evaluate(w, theta(p) + log_epsilon_step, false);
  const Sample below = evaluate(w, theta(p) - log_epsilon_step, false);
  Sample here = evaluate(w, theta(p), true);
  set_last_column(here.hessian, (above.gradient - below.gradient) / (2 * log_epsilon_step));
  return here.hessian;
}

// Steps of a twentieth of the noise in the predictions: well above the rounding error of gradients, well below the
// scale of curvature.
Matrix LinkLikelihood::information_by_differences(const Vector& theta) {
  const Index p = theta.size() - 1;
  const double spread = std::sqrt(squares_about_mean(problem_.y) / double(problem_.y.size()));
  const double noise = std::sqrt(known_epsilon_or(std::exp(theta(p))) / 2);
  Vector step(p + 1);
  step << 0.05 * noise / spread * natural_steps(problem_, bound_, theta.head(p)), log_epsilon_step;
  Matrix hessian = Matrix::Identity(p + 1, p + 1);
  for (Index k = 0; k < (known_epsilon_ > 0 ? p : p + 1); ++k) {
    Vector above = theta, below = theta;
    above(k) += step(k);
    below(k) -= step(k);
    hessian.col(k) = (at(above, false).gradient - at(below, false).gradient) / (2 * step(k));
  }
  return 0.5 * (hessian + hessian.transpose());
}

Vector Optimum::theta() const {
  Vector made(parameters.size() + 1);
  made << parameters, std::log(epsilon);
  return made;
}

// Descents run in units in which one step of a coefficient changes predictions about as much as y varies.
Optimum LinkLikelihood::most_likely_near(const Vector& w, double epsilon, int max_iterations,
                                         const std::function<bool()>& keep_going) {
  const Index p = w.size();
  Vector origin(p + 1);
  origin << w, std::log(known_epsilon_or(epsilon));
  Vector unit = Vector::Ones(p + 1);
  unit.head(p) = natural_steps(problem_, bound_, w);
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
  const Vector start = Vector::Zero(p + 1);
  const Minimum found = has_hessian() ? trust_region(f, start, stop, watch) : lbfgs(f, start, stop, watch);
  const Vector theta = origin + unit.cwiseProduct(found.at);
  return {theta.head(p), std::exp(theta(p)), found.value, found.converged, found.iterations, found.message};
}

}  // namespace unshuffle
