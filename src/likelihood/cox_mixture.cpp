#include "likelihood/cox_mixture.hpp"

#include <cmath>
#include <optional>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "likelihood/cox.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {

namespace {

/// Parameters of the likelihood, and what follows from them for every row.
struct CoxState {
  Vector w, delta;
  Baseline baseline;
  Vector hazard;       ///< e^η.
  Vector log_ratio;    ///< log K - log q.
  Vector right;        ///< π.
  Vector prior_right;  ///< s(λ); 1 where the link is known.
  double log_likelihood = 0;
};

/// A direction, or a gradient, in (w, δ, log h).
struct CoxVector {
  Vector w, delta, baseline;

  [[nodiscard]] double dot(const CoxVector& other) const {
    return w.dot(other.w) + delta.dot(other.delta) + baseline.dot(other.baseline);
  }
  void add(double scale, const CoxVector& other) {
    w += scale * other.w;
    delta += scale * other.delta;
    baseline += scale * other.baseline;
  }
};

class CoxMixture {
 public:
  CoxMixture(const FamilyRows& rows, const Vector& event, const LinkOdds& odds)
      : rows_(rows), event_(event), odds_(odds), risk_(rows.y, event) {
    const Baseline all = baseline_of(risk_, rows.weights, Vector::Zero(rows.size()));
    log_other_ = -all.cumulative;
    for (Index i = 0; i < rows.size(); ++i)
      if (const Index k = risk_.at[std::size_t(i)]; k >= 0) log_other_(i) += std::log(all.hazard(k));
  }

  [[nodiscard]] CoxState begin(const Vector& w, const Vector& delta) const {
    CoxState state;
    state.w = w;
    state.delta = delta;
    state.baseline = baseline_of(risk_, rows_.weights, rows_.design * w + rows_.offset);
    expect(state);
    return state;
  }

  /// One step of EM; Cox regression takes one step of Newton's method, which the next one continues.
  void step(CoxState& state) const {
    const Vector weights = rows_.weights.cwiseProduct(state.right);
    const Sample here = cox_sample(risk_, rows_, weights, state.w, true);
    Vector move = -balanced_inverse(here.hessian) * here.gradient;
    for (int halved = 0; halved < 20; ++halved, move *= 0.5)
      if (cox_sample(risk_, rows_, weights, state.w + move, false).value <= here.value) break;
    state.w += move;
    state.baseline = baseline_of(risk_, weights, rows_.design * state.w + rows_.offset);
    if (state.delta.size() > 0) state.delta = best_odds(state);
    expect(state);
  }

  /// Minus the Hessian of the log-likelihood times a direction.
  [[nodiscard]] CoxVector information_times(const CoxState& at, const CoxVector& v) const {
    const Vector along = rows_.design * v.w;
    const Vector in_hazard = exposed(risk_, at.baseline.own, at.baseline.hazard.cwiseProduct(v.baseline));
    const Vector& r = at.hazard;
    Vector slope = martingale(at).cwiseProduct(along) - r.cwiseProduct(in_hazard);
    for (Index i = 0; i < slope.size(); ++i)
      if (const Index k = risk_.at[std::size_t(i)]; k >= 0) slope(i) += v.baseline(k);
    const Vector in_odds = odds_along(v);
    const Vector doubt = rows_.weights.cwiseProduct(doubt_of(at));
    const Vector both = doubt.cwiseProduct(slope + in_odds);
    const Vector prior = rows_.weights.array() * at.prior_right.array() * (1 - at.prior_right.array());
    const Vector weight = rows_.weights.cwiseProduct(at.right).cwiseProduct(r);
    CoxVector made;
    made.w = rows_.design.transpose() * (weight.cwiseProduct(at.baseline.cumulative.cwiseProduct(along) + in_hazard) -
                                         both.cwiseProduct(martingale(at)));
    made.delta = odds_.design.transpose() * (prior.cwiseProduct(in_odds) - both);
    made.baseline = at.baseline.hazard.cwiseProduct(
        exposure_sums(risk_, at.baseline.own, weight.cwiseProduct(along) + both.cwiseProduct(r)) +
        exposure_sums(risk_, at.baseline.own, weight).cwiseProduct(v.baseline));
    for (Index i = 0; i < both.size(); ++i)
      if (const Index k = risk_.at[std::size_t(i)]; k >= 0) made.baseline(k) -= both(i);
    if (odds_.rate_precision > 0) made.delta += distance_from_rate(odds_, rows_.known, at.delta).hessian * v.delta;
    return made;
  }

  /// Of every row: its score times a direction.
  [[nodiscard]] Vector scores_along(const CoxState& at, const CoxVector& v) const {
    const Vector in_hazard = exposed(risk_, at.baseline.own, at.baseline.hazard.cwiseProduct(v.baseline));
    Vector slope = martingale(at).cwiseProduct(rows_.design * v.w) - at.hazard.cwiseProduct(in_hazard);
    for (Index i = 0; i < slope.size(); ++i)
      if (const Index k = risk_.at[std::size_t(i)]; k >= 0) slope(i) += v.baseline(k);
    return rows_.weights.cwiseProduct(at.right.cwiseProduct(slope) +
                                      (at.right - at.prior_right).cwiseProduct(odds_along(v)));
  }

  /// The inverse of the diagonal of the information of complete data.
  [[nodiscard]] CoxVector scale(const CoxState& at) const {
    const Vector weight = rows_.weights.cwiseProduct(at.right).cwiseProduct(at.hazard);
    const Vector exposure = weight.cwiseProduct(at.baseline.cumulative);
    const Vector prior = rows_.weights.array() * at.prior_right.array() * (1 - at.prior_right.array());
    const auto inverse = [](const Vector& values) {
      return Vector(values.unaryExpr([](double value) { return value > 0 ? 1 / value : 1.0; }));
    };
    return {inverse(rows_.design.cwiseAbs2().transpose() * exposure),
            inverse(odds_.design.cwiseAbs2().transpose() * prior),
            inverse(at.baseline.hazard.cwiseProduct(exposure_sums(risk_, at.baseline.own, weight)))};
  }

  [[nodiscard]] double log_other_sum() const { return rows_.weights.dot(log_other_); }
  [[nodiscard]] Index times() const { return risk_.times(); }

 private:
  [[nodiscard]] Vector martingale(const CoxState& at) const {
    return event_ - at.hazard.cwiseProduct(at.baseline.cumulative);
  }
  [[nodiscard]] static Vector doubt_of(const CoxState& at) { return at.right.array() * (1 - at.right.array()); }
  /// Known links have no odds.
  [[nodiscard]] Vector odds_along(const CoxVector& v) const {
    Vector made = odds_.design * v.delta;
    made.head(rows_.known).setZero();
    return made;
  }

  void expect(CoxState& state) const {
    const Vector eta = rows_.design * state.w + rows_.offset;
    state.hazard = eta.array().exp();
    Vector lambda = odds_.offset;
    if (state.delta.size() > 0) lambda += odds_.design * state.delta;
    state.log_ratio = -state.hazard.cwiseProduct(state.baseline.cumulative) - log_other_;
    state.right = state.prior_right = Vector::Ones(rows_.size());
    state.log_likelihood = 0;
    for (Index i = 0; i < rows_.size(); ++i) {
      if (const Index k = risk_.at[std::size_t(i)]; k >= 0)
        state.log_ratio(i) += eta(i) + std::log(state.baseline.hazard(k));
      double value = state.log_ratio(i) + log_other_(i);
      if (i >= rows_.known) {
        state.prior_right(i) = 1 / (1 + std::exp(-lambda(i)));
        const double odds = lambda(i) + state.log_ratio(i);
        state.right(i) = 1 / (1 + std::exp(-odds));
        // log(s K + (1-s) q) = log q + log(1-s) + log(1 + e^odds)
        const double log_wrong =
            -(lambda(i) > 0 ? lambda(i) + std::log1p(std::exp(-lambda(i))) : std::log1p(std::exp(lambda(i))));
        value =
            log_other_(i) + log_wrong + (odds > 0 ? odds + std::log1p(std::exp(-odds)) : std::log1p(std::exp(odds)));
      }
      state.log_likelihood += rows_.weights(i) * value;
    }
    if (odds_.rate_precision > 0) state.log_likelihood -= distance_from_rate(odds_, rows_.known, state.delta).value;
  }

  /// δ given π: logistic regression.
  [[nodiscard]] Vector best_odds(const CoxState& state) const {
    constexpr int few_steps = 5;
    const Index open = rows_.size() - rows_.known;
    if (open == 0) return state.delta;
    const Matrix design = odds_.design.bottomRows(open);
    const Vector offset = odds_.offset.tail(open), right = state.right.tail(open), weights = rows_.weights.tail(open);
    const SmoothFunction minus = [&](const Vector& delta, bool with_hessian) {
      const Vector lambda = design * delta + offset;
      const Vector s = (1 + (-lambda.array()).exp()).inverse();
      Sample made;
      for (Index i = 0; i < open; ++i)
        made.value +=
            weights(i) * (std::max(lambda(i), 0.0) + std::log1p(std::exp(-std::abs(lambda(i)))) - right(i) * lambda(i));
      made.gradient = design.transpose() * weights.cwiseProduct(s - right);
      if (with_hessian) made.hessian = weighted_gram(design, Vector(weights.array() * s.array() * (1 - s.array())));
      if (odds_.rate_precision == 0) return made;
      const Sample known = distance_from_rate(odds_, rows_.known, delta);
      made.value += known.value;
      made.gradient += known.gradient;
      if (with_hessian) made.hessian += known.hessian;
      return made;
    };
    return most_likely(minus, weights.sum(), state.delta, few_steps).theta;
  }

  const FamilyRows& rows_;
  const Vector& event_;
  const LinkOdds& odds_;
  RiskSets risk_;
  Vector log_other_;  ///< log q.
};

/// EM until the likelihood stands still; whether it does.
bool climb(const CoxMixture& mixture, CoxState& state, int steps, int& taken) {
  constexpr double still = 1e-10;  // nats, as the likelihood is far from quadratic in few events
  for (int k = 0; k < steps; ++k, ++taken) {
    const double before = state.log_likelihood;
    const Vector from = state.w;
    mixture.step(state);
    if (std::abs(state.log_likelihood - before) < still * (1 + std::abs(before)) &&
        (state.w - from).norm() < 1e-8 * (1 + from.norm()))
      return true;
  }
  return false;
}

/// The column of the inverse information that belongs to a coordinate, by conjugate gradients.
CoxVector solved(const CoxMixture& mixture, const CoxState& at, const CoxVector& right) {
  constexpr int gradient_steps = 2000;
  constexpr double accuracy = 1e-10;
  const CoxVector scale = mixture.scale(at);
  const auto scaled = [&](const CoxVector& v) {
    return CoxVector{scale.w.cwiseProduct(v.w), scale.delta.cwiseProduct(v.delta),
                     scale.baseline.cwiseProduct(v.baseline)};
  };
  CoxVector found{Vector::Zero(right.w.size()), Vector::Zero(right.delta.size()), Vector::Zero(right.baseline.size())};
  CoxVector left = right, direction = scaled(right);
  double square = left.dot(direction);
  const double first = square;
  for (int k = 0; k < gradient_steps && square > accuracy * accuracy * first; ++k) {
    stop_if_asked();
    const CoxVector image = mixture.information_times(at, direction);
    const double step = square / direction.dot(image);
    found.add(step, direction);
    left.add(-step, image);
    CoxVector next = scaled(left);
    const double after = left.dot(next);
    next.add(after / square, direction);
    direction = std::move(next);
    square = after;
  }
  return found;
}

void add_errors(const CoxMixture& mixture, const FamilyRows& rows, const LinkOdds& odds, const CoxState& at,
                FamilyMixtureFit& fit) {
  const Index p = at.w.size(), q = at.delta.size(), all = p + q;
  Matrix inverse(all, all), scores(rows.size(), all), odds_part(q, all);
  for (Index k = 0; k < all; ++k) {
    CoxVector unit{Vector::Zero(p), Vector::Zero(q), Vector::Zero(mixture.times())};
    (k < p ? unit.w(k) : unit.delta(k - p)) = 1;
    const CoxVector column = solved(mixture, at, unit);
    inverse.col(k) << column.w, column.delta;
    odds_part.col(k) = column.delta;
    scores.col(k) = mixture.scores_along(at, column);
  }
  Matrix sandwich = gram(scores);
  if (odds.rate_precision > 0)
    sandwich += odds_part.transpose() * distance_from_rate(odds, rows.known, at.delta).hessian * odds_part;
  fit.model_covariance = 0.5 * (inverse + inverse.transpose());
  fit.covariance = sandwich.topLeftCorner(p, p);
  fit.shape_errors.resize(0);
  fit.odds_errors = sandwich.diagonal().tail(q).cwiseMax(0).cwiseSqrt();
}

}  // namespace

Vector null_residuals(const FamilyRows& rows, const Vector& event) {
  return event - baseline_of(RiskSets(rows.y, event), rows.weights, rows.offset)
                     .cumulative.cwiseProduct(rows.offset.array().exp().matrix());
}

CoxMixtureFit fit_cox_mixture(const FamilyRows& rows, const Vector& event, const LinkOdds& odds) {
  constexpr int brief = 30, thorough = 5000;
  const CoxMixture mixture(rows, event, odds);
  const Vector naive = fit_cox(rows, event).parameters;
  std::optional<CoxState> best;
  int taken = 0;
  const bool shifted = odds.start.size() > 0 && odds.rate_precision == 0;
  for (const double stretch : {1.0, 2.0}) {
    for (const double shift : shifted ? std::vector<double>{0.0, 2.0} : std::vector<double>{0.0}) {
      stop_if_asked();
      Vector delta = odds.start;
      if (delta.size() > 0) delta(0) += shift;
      CoxState state = mixture.begin(stretch * naive, delta);
      (void)climb(mixture, state, brief, taken);
      if (std::isfinite(state.log_likelihood) && (!best || state.log_likelihood > best->log_likelihood)) best = state;
    }
  }
  if (!best) best = mixture.begin(Vector::Zero(naive.size()), odds.start);
  CoxMixtureFit made;
  FamilyMixtureFit& fit = made.fit;
  fit.converged = climb(mixture, *best, thorough, taken);
  fit.iterations = taken;
  fit.parameters = best->w;
  fit.odds = best->delta;
  fit.link_probability = best->right;
  fit.log_likelihood = best->log_likelihood;
  fit.gain = best->log_likelihood - mixture.log_other_sum();
  add_errors(mixture, rows, odds, *best, fit);
  made.cumulative = best->baseline.cumulative;
  return made;
}

}  // namespace unshuffle
