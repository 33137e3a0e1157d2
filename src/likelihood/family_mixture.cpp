#include "likelihood/family_mixture.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "core/balanced_inverse.hpp"
#include "core/special.hpp"
#include "likelihood/kernel_density.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {

// Link i is right with probability s(λ_i) = 1/(1 + e^{-λ_i}), and then y_i has the family's density K_i(η_i, τ); else
// it is drawn from q, which does not depend on the features:
//   ℓ_i = log(s(λ_i) K_i + (1 - s(λ_i)) q_i),    π_i = s(λ_i) K_i / e^{ℓ_i}.
// With g the derivatives of log K_i in (η, τ) and H the second ones,
//   ∂ℓ = π g,   ∂²ℓ = π H + π(1-π) g gᵀ,   ∂ℓ/∂λ = π - s,   ∂²ℓ/∂λ² = π(1-π) - s(1-s),   ∂²ℓ/∂λ∂· = π(1-π) g.
// So the observed likelihood is a sum over rows in four coordinates, and Newton's method is its EM with the step length
// put right. docs/mathematics.md §18.2.
namespace {

double log_logistic(double x) { return x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x)); }

/// A density of positive numbers is estimated on their logarithms.
Vector log_density_of_values(const Vector& y, bool positive, std::uint64_t seed) {
  const Matrix values = positive ? Matrix(y.array().log().matrix()) : Matrix(y);
  Vector logs = KernelDensity(values, seed).log_at(values);
  if (positive) logs -= values.col(0);
  return logs;
}

Vector log_shares(const Vector& y, const Vector& weights) {
  std::map<double, double> share;
  for (Index i = 0; i < y.size(); ++i) share[y(i)] += weights(i);
  const double total = weights.sum();
  return y.unaryExpr([&](double value) { return std::log(share.at(value) / total); });
}

/// Successes of m trials when the link is wrong: of another row's probability, estimated from that row alone.
Vector log_shares_of_trials(const FamilyRows& rows) {
  std::map<std::pair<double, double>, double> others;  // weight of rows by (y, trials)
  for (Index i = 0; i < rows.size(); ++i) others[{rows.y(i), rows.trials(i)}] += rows.weights(i);
  const double total = rows.weights.sum();
  std::map<std::pair<double, double>, double> made;
  const Family& binomial = family_of(FamilyKind::binomial);
  for (const auto& [own, weight] : others) {
    double sum = 0;
    for (const auto& [other, share] : others)
      sum += share * std::exp(binomial
                                  .log_density({own.first, binomial.linked(other.first, other.second), own.second},
                                               Shape::Zero())
                                  .value);
    made[own] = std::log(sum / total);
  }
  Vector logs(rows.size());
  for (Index i = 0; i < rows.size(); ++i) logs(i) = made.at({rows.y(i), rows.trials(i)});
  return logs;
}

RowTerm mixture_term(const LogDensity& right, double log_other, double lambda) {
  const double log_s = log_logistic(lambda), log_rest = log_logistic(-lambda);
  const double a = log_s + right.value, b = log_rest + log_other;
  RowTerm term;
  term.value = std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  const double pi = std::exp(a - term.value), s = std::exp(log_s), doubt = pi * (1 - pi);
  term.gradient.head<3>() = pi * right.gradient;
  term.gradient(3) = pi - s;
  term.hessian.topLeftCorner<3, 3>() = pi * right.hessian + doubt * right.gradient * right.gradient.transpose();
  term.hessian.col(3).head<3>() = doubt * right.gradient;
  term.hessian.row(3).head<3>() = doubt * right.gradient.transpose();
  term.hessian(3, 3) = doubt - s * (1 - s);
  return term;
}

RowTerm known_term(const LogDensity& right) {
  RowTerm term;
  term.value = right.value;
  term.gradient.head<3>() = right.gradient;
  term.hessian.topLeftCorner<3, 3>() = right.hessian;
  return term;
}

/// The log-likelihood of (w, τ, δ). Laws with fewer than two shapes leave coordinates of τ out, so the odds are the
/// last coordinate in the likelihood and the fourth in a row's term.
class MixtureLikelihood {
 public:
  MixtureLikelihood(const Family& family, const FamilyRows& rows, const LinkOdds& odds, Vector log_other)
      : family_(family), rows_(rows), log_other_(std::move(log_other)), shapes_(family.shapes()) {
    std::vector<Coordinate> coordinates{{rows.design, rows.offset}};
    for (Index k = 0; k < shapes_; ++k) coordinates.emplace_back();
    coordinates.push_back({odds.design, odds.offset});
    likelihood_.emplace(std::move(coordinates), rows.weights,
                        [this](Index row, const Eigen::Vector4d& at) { return in_order(term(row, at)); });
    if (odds.rate_precision > 0) {
      likelihood_->add_knowledge([this, &odds](const Vector& theta, bool) {
        const Index first = rows_.design.cols() + shapes_, count = odds.design.cols();
        const Sample of_odds = distance_from_rate(odds, rows_.known, theta.segment(first, count));
        Sample made{of_odds.value, Vector::Zero(theta.size()), Matrix::Zero(theta.size(), theta.size())};
        made.gradient.segment(first, count) = of_odds.gradient;
        made.hessian.block(first, first, count, count) = of_odds.hessian;
        return made;
      });
    }
  }
  MixtureLikelihood(const MixtureLikelihood&) = delete;
  MixtureLikelihood& operator=(const MixtureLikelihood&) = delete;

  [[nodiscard]] const RowLikelihood& sum() const { return *likelihood_; }
  [[nodiscard]] const Vector& log_other() const { return log_other_; }

  [[nodiscard]] Vector link_probability(const Vector& theta) const {
    const Vector eta = sum().coordinate(0, theta), lambda = sum().coordinate(1 + shapes_, theta);
    const Shape shape = shape_in(family_, theta, rows_.design.cols());
    Vector made = Vector::Ones(rows_.size());
    for (Index i = rows_.known; i < rows_.size(); ++i) {
      const double right = family_.log_density(rows_.at(i, eta(i)), shape).value;
      made(i) = std::exp(log_logistic(lambda(i) + right - log_other_(i)));
    }
    return made;
  }

 private:
  [[nodiscard]] RowTerm term(Index row, const Eigen::Vector4d& at) const {
    Shape shape = Shape::Zero();
    for (Index k = 0; k < shapes_; ++k) shape(k) = at(1 + k);
    const LogDensity right = family_.log_density(rows_.at(row, at(0)), shape);
    return row < rows_.known ? known_term(right) : mixture_term(right, log_other_(row), at(1 + shapes_));
  }
  /// With the odds behind the shapes there are.
  [[nodiscard]] RowTerm in_order(RowTerm term) const {
    const Index last = 1 + shapes_;
    if (last == 3) return term;
    term.gradient(last) = term.gradient(3);
    term.hessian.col(last) = term.hessian.col(3).eval();
    term.hessian.row(last) = term.hessian.row(3).eval();
    term.hessian(last, last) = term.hessian(3, 3);
    return term;
  }

  const Family& family_;
  const FamilyRows& rows_;
  Vector log_other_;
  Index shapes_;
  std::optional<RowLikelihood> likelihood_;
};

/// (w, τ) by regression on rows as they weigh.
Vector regression(const Family& family, const FamilyRows& rows, const Vector& weights) {
  constexpr int few_steps = 30;
  return most_likely(family_likelihood(family, rows, weights), first_guess(family, rows, weights), few_steps).theta;
}

/// The half of the rows whose responses are likelier at these coefficients than the typical one is at its own best.
Vector better_half(const Family& family, const FamilyRows& rows, const Vector& theta, const Vector& log_other) {
  const Index p = rows.design.cols();
  const Vector eta = rows.design * theta.head(p) + rows.offset;
  const Shape shape = shape_in(family, theta, p);
  Vector gain(rows.size());
  for (Index i = 0; i < rows.size(); ++i)
    gain(i) = i < rows.known ? HUGE_VAL : family.log_density(rows.at(i, eta(i)), shape).value - log_other(i);
  std::vector<double> sorted(gain.begin(), gain.end());
  const auto middle = sorted.begin() + long(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return rows.weights.array() * (gain.array() >= *middle).cast<double>();
}

std::vector<Vector> starts_of(const Family& family, const FamilyRows& rows, const LinkOdds& odds,
                              const Vector& log_other) {
  const Vector all = regression(family, rows, rows.weights);
  const Vector half = regression(family, rows, better_half(family, rows, all, log_other));
  std::vector<Vector> starts;
  for (const Vector& one : {all, half}) {
    if (!one.allFinite()) continue;
    for (const double shift : odds.design.cols() > 0 && odds.rate_precision == 0 ? std::vector<double>{0.0, 2.0}
                                                                                 : std::vector<double>{0.0}) {
      Vector theta(one.size() + odds.start.size());
      theta << one, odds.start;
      if (odds.start.size() > 0) theta(one.size()) += shift;
      starts.push_back(theta);
    }
  }
  return starts;
}

}  // namespace

Sample distance_from_rate(const LinkOdds& odds, Index known, const Vector& delta) {
  const Index open = odds.design.rows() - known;
  const Matrix design = odds.design.bottomRows(open);
  const Vector lambda = design * delta + odds.offset.tail(open);
  const Eigen::ArrayXd wrong = 1 / (1 + lambda.array().exp());
  const double off = wrong.mean() - odds.rate;
  const Vector slope = -(design.transpose() * (wrong * (1 - wrong)).matrix()) / double(open);
  const Vector bend = (wrong * (1 - wrong) * (1 - 2 * wrong)).matrix() / double(open);
  return {0.5 * odds.rate_precision * off * off, odds.rate_precision * off * slope,
          odds.rate_precision * (slope * slope.transpose() + off * (design.transpose() * bend.asDiagonal() * design))};
}

LinkOdds link_odds(const RowFacts& facts, const Links& links, Index known) {
  const Index n = links.size(), q = facts.mismatch.cols();
  const bool rate_known = facts.wrong_rate.size() > 0;
  LinkOdds odds;
  odds.offset = Vector::Zero(n);
  odds.design.resize(n, 0);
  if (rate_known && known < n) {
    const Vector rate = facts.wrong_rate(links.responses);
    odds.offset = ((1 - rate.array()) / rate.array()).log();
    if (q == 0 && facts.audit == 0) return odds;
    // An audit of N links finds a rate whose variance is α(1-α)/N.
    constexpr double exact = 1e8;  // links
    odds.rate = rate.tail(n - known).mean();
    odds.rate_precision = (facts.audit > 0 ? facts.audit : exact) / (odds.rate * (1 - odds.rate));
  }
  odds.design.resize(n, 1 + q);
  odds.design.col(0).setOnes();
  odds.names = {"constant"};
  odds.start = Vector::Zero(1 + q);
  for (Index k = 0; k < q; ++k) {
    odds.design.col(1 + k) = facts.mismatch.col(k)(links.responses);
    odds.names.push_back(facts.mismatch_names[std::size_t(k)]);
    // A probability that the links are right is believed until the rows say otherwise.
    if (odds.names.back().rfind("logit(", 0) == 0 && !rate_known) odds.start(1 + k) = 1;
  }
  return odds;
}

Vector log_law_of_wrong_links(const Family& family, const FamilyRows& rows, std::uint64_t seed) {
  const bool equal_trials = (rows.trials.array() == rows.trials(0)).all();
  if (family.whole_numbers()) return equal_trials ? log_shares(rows.y, rows.weights) : log_shares_of_trials(rows);
  return log_density_of_values(rows.y, family.kind() == FamilyKind::gamma, seed);
}

FamilyMixtureFit fit_family_mixture(const Family& family, const FamilyRows& rows, const LinkOdds& odds,
                                    std::uint64_t seed) {
  constexpr int brief = 25;
  const MixtureLikelihood likelihood(family, rows, odds, log_law_of_wrong_links(family, rows, seed));
  RowOptimum best;
  for (const Vector& start : starts_of(family, rows, odds, likelihood.log_other())) {
    stop_if_asked();
    RowOptimum found = most_likely(likelihood.sum(), start, brief);
    if (best.theta.size() == 0 || found.log_likelihood > best.log_likelihood) best = std::move(found);
  }
  if (!best.converged) best = most_likely(likelihood.sum(), best.theta);
  const Index p = rows.design.cols(), k = family.shapes();
  FamilyMixtureFit fit;
  fit.parameters = best.theta.head(p);
  fit.shape = shape_in(family, best.theta, p);
  fit.odds = best.theta.tail(best.theta.size() - p - k);
  const Matrix inverse = balanced_inverse(best.information);
  const Matrix sandwich = inverse * likelihood.sum().scores(best.theta) * inverse;
  const Vector errors = sandwich.diagonal().cwiseMax(0).cwiseSqrt();
  fit.model_covariance = inverse;
  fit.covariance = sandwich.topLeftCorner(p, p);
  fit.shape_errors = errors.segment(p, k);
  fit.odds_errors = errors.tail(fit.odds.size());
  fit.link_probability = likelihood.link_probability(best.theta);
  fit.log_likelihood = best.log_likelihood;
  fit.gain = best.log_likelihood - rows.weights.dot(likelihood.log_other());
  fit.converged = best.converged;
  fit.iterations = best.iterations;
  return fit;
}

Vector link_probabilities_at(const Family& family, const FamilyRows& rows, const LinkOdds& odds,
                             const Vector& log_other, const Vector& w, const Shape& shape) {
  FamilyRows given = rows;
  given.offset += rows.design * w;
  given.design.resize(rows.size(), 0);
  const MixtureLikelihood likelihood(family, given, odds, log_other);
  Vector theta(family.shapes() + odds.start.size());
  theta << shape.head(family.shapes()), odds.start;
  if (theta.size() > 0) theta = most_likely(likelihood.sum(), theta).theta;
  return likelihood.link_probability(theta);
}

}  // namespace unshuffle
