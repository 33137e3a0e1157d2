#include "likelihood/cox_mixture.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "likelihood/cox.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {

namespace {

struct CoxState {
  Vector w, delta;
  Baseline baseline;
  Vector hazard;        ///< r = e^η.
  Vector other_hazard;  ///< Mean of r given the response where the link is wrong,
  Vector other_square;  ///< and of r².
  Vector log_other;     ///< log Q.
  Vector right;         ///< π.
  Vector prior_right;   ///< s(λ); 1 where the link is known.
  double log_likelihood = 0;

  /// Mean of r given the response.
  [[nodiscard]] Vector mean_hazard() const {
    return right.cwiseProduct(hazard) + (Vector::Ones(right.size()) - right).cwiseProduct(other_hazard);
  }
  [[nodiscard]] Vector doubt() const { return right.array() * (1 - right.array()); }
};

double log_one_plus_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

class CoxMixture {
 public:
  CoxMixture(const FamilyRows& rows, const Vector& event, const LinkOdds& odds)
      : rows_(rows), event_(event), odds_(odds), risk_(rows.y, event) {}

  [[nodiscard]] Index coordinates() const { return rows_.design.cols() + odds_.start.size(); }

  [[nodiscard]] CoxState begin(const Vector& w, const Vector& delta) const {
    CoxState state;
    state.w = w;
    state.delta = delta;
    state.baseline = baseline_of(risk_, rows_.weights, rows_.design * w + rows_.offset);
    expect(state);
    return state;
  }

  /// One step for w, δ and the baseline each; how far they moved.
  double step(CoxState& state) const {
    const Vector from = state.w, odds_before = state.delta;
    const Vector exposure = state.hazard.cwiseProduct(state.baseline.cumulative);
    const Vector weight = rows_.weights.cwiseProduct(state.right);
    // The baseline follows w, which centring allows for.
    const Vector informed = weight.cwiseProduct(exposure);
    const Eigen::RowVectorXd centre = informed.transpose() * rows_.design / informed.sum();
    const Matrix centred = rows_.design.rowwise() - centre;
    Vector move = balanced_inverse(weighted_gram(centred, informed)) *
                  (rows_.design.transpose() * weight.cwiseProduct(event_ - exposure));
    constexpr double largest = 1;  // change of a predictor
    const double change = (centred * move).cwiseAbs().maxCoeff();
    if (change > largest) move *= largest / change;
    state.w += move;
    if (state.delta.size() > 0) state.delta = best_odds(state);
    expect(state);
    const double moved = update_baseline(state);
    expect(state);
    const double shift = (rows_.design * (state.w - from)).cwiseAbs().maxCoeff();
    const double turned = state.delta.size() > 0 ? (state.delta - odds_before).cwiseAbs().maxCoeff() : 0;
    return std::max({shift, moved, turned});
  }

  /// The equations of (w, δ), a column each, of every row.
  [[nodiscard]] Matrix equations(const CoxState& at) const {
    const Index p = rows_.design.cols();
    Matrix made(rows_.size(), coordinates());
    made.leftCols(p) = rows_.weights.cwiseProduct(at.right).cwiseProduct(martingale(at)).asDiagonal() * rows_.design;
    made.rightCols(coordinates() - p) =
        rows_.weights.cwiseProduct(at.right - at.prior_right).asDiagonal() * odds_.design;
    return made;
  }

  /// Their sums at (w, δ) where the baseline suits them.
  [[nodiscard]] Vector profile(const CoxState& near, const Vector& theta) const {
    constexpr int most_rounds = 500;
    constexpr double still = 1e-11;
    CoxState state = near;
    state.w = theta.head(rows_.design.cols());
    state.delta = theta.tail(near.delta.size());
    expect(state);
    for (int k = 0; k < most_rounds; ++k) {
      const double moved = update_baseline(state);
      expect(state);
      if (moved < still) break;
    }
    Vector sums = equations(state).colwise().sum().transpose();
    if (odds_.rate_precision > 0)
      sums.tail(near.delta.size()) -= distance_from_rate(odds_, rows_.known, state.delta).gradient;
    return sums;
  }

  // The equation of the increment at time k, in log h, is H_k = d_k - h_k Σ_i E_ik T_i, and dT_i/dΛ_i = -V_i, the
  // variance of r given the response. So minus the derivative of H is the symmetric diag(d) - Σ_i V_i (hE_i)(hE_i)ᵀ,
  // and an equation Σ ψ_i with dψ_i/dΛ_i = D_i becomes Σ ψ_i + z·H_i, z = (-H')⁻¹ Σ_i D_i (hE_i): what errors of the
  // baseline add to it.
  [[nodiscard]] Matrix with_errors_of_baseline(const CoxState& at) const {
    const Index p = rows_.design.cols();
    Matrix made = equations(at);
    const Vector apart = at.doubt().cwiseProduct(at.other_hazard - at.hazard);
    const Vector of_w = apart.cwiseProduct(martingale(at)) - at.right.cwiseProduct(at.hazard);
    const Vector mean = at.mean_hazard();
    for (Index a = 0; a < made.cols(); ++a) {
      const Vector slope =
          a < p ? Vector(of_w.cwiseProduct(rows_.design.col(a))) : Vector(apart.cwiseProduct(odds_.design.col(a - p)));
      const Vector z = solved(at, sums_over_times(at, rows_.weights.cwiseProduct(slope)));
      const Vector along = exposed(risk_, at.baseline.own, at.baseline.hazard.cwiseProduct(z));
      for (Index i = 0; i < rows_.size(); ++i) {
        const Index k = risk_.at[std::size_t(i)];
        made(i, a) += rows_.weights(i) * ((k >= 0 ? z(k) : 0) - mean(i) * along(i));
      }
    }
    return made;
  }

 private:
  [[nodiscard]] Vector martingale(const CoxState& at) const {
    return event_ - at.hazard.cwiseProduct(at.baseline.cumulative);
  }

  /// Σ_i v_i E_ik h_k.
  [[nodiscard]] Vector sums_over_times(const CoxState& at, const Vector& values) const {
    return at.baseline.hazard.cwiseProduct(exposure_sums(risk_, at.baseline.own, values));
  }

  /// (-H')⁻¹ v by conjugate gradients.
  [[nodiscard]] Vector solved(const CoxState& at, const Vector& right) const {
    constexpr int rounds = 500;
    constexpr double accuracy = 1e-10;
    const Vector mean = at.mean_hazard();
    const Vector squares = at.right.cwiseProduct(at.hazard.cwiseAbs2()) +
                           (Vector::Ones(mean.size()) - at.right).cwiseProduct(at.other_square);
    const Vector variance = rows_.weights.cwiseProduct((squares - mean.cwiseAbs2()).cwiseMax(0));
    const Vector diagonal = sums_over_times(at, rows_.weights.cwiseProduct(mean));
    const auto image = [&](const Vector& v) -> Vector {
      const Vector along = exposed(risk_, at.baseline.own, at.baseline.hazard.cwiseProduct(v));
      return diagonal.cwiseProduct(v) - sums_over_times(at, variance.cwiseProduct(along));
    };
    Vector found = Vector::Zero(right.size()), left = right, direction = left.cwiseQuotient(diagonal);
    double square = left.dot(direction);
    const double first = square;
    for (int k = 0; k < rounds && square > accuracy * accuracy * first; ++k) {
      const Vector moved = image(direction);
      const double along = square / direction.dot(moved);
      found += along * direction;
      left -= along * moved;
      const Vector scaled = left.cwiseQuotient(diagonal);
      const double after = left.dot(scaled);
      direction = scaled + after / square * direction;
      square = after;
    }
    return found;
  }

  /// The baseline that suits the mean hazards; the largest change of a logarithm.
  double update_baseline(CoxState& state) const {
    const Vector mean = state.mean_hazard();
    const Vector before = state.baseline.hazard;
    state.baseline = baseline_of(risk_, rows_.weights, mean.array().log());
    return (state.baseline.hazard.array() / before.array()).log().abs().maxCoeff();
  }

  /// Hazards of some rows that stand for all whose links are open, with their shares.
  struct Others {
    Vector hazard, share;
  };
  [[nodiscard]] Others others(const CoxState& state) const {
    constexpr Index most = 128;
    const Index open = rows_.size() - rows_.known;
    std::vector<Index> order(std::size_t(open), 0);
    std::iota(order.begin(), order.end(), rows_.known);
    std::sort(order.begin(), order.end(), [&](Index a, Index b) { return state.hazard(a) < state.hazard(b); });
    const Index count = std::min(most, open);
    Others made{Vector::Zero(count), Vector::Zero(count)};
    for (Index k = 0; k < open; ++k) {
      const Index row = order[std::size_t(k)], place = k * count / open;
      made.hazard(place) += rows_.weights(row) * state.hazard(row);
      made.share(place) += rows_.weights(row);
    }
    made.hazard = made.hazard.cwiseQuotient(made.share);
    made.share /= made.share.sum();
    return made;
  }

  void expect(CoxState& state) const {
    const Vector eta = rows_.design * state.w + rows_.offset;
    state.hazard = eta.array().exp();
    Vector lambda = odds_.offset;
    if (state.delta.size() > 0) lambda += odds_.design * state.delta;
    const Index n = rows_.size();
    state.right = state.prior_right = Vector::Ones(n);
    state.other_hazard = state.hazard;
    state.other_square = state.hazard.cwiseAbs2();
    state.log_other.resize(n);
    state.log_likelihood = 0;
    const Others other = rows_.known < n ? others(state) : Others{Vector::Ones(1), Vector::Ones(1)};
    for (Index i = 0; i < n; ++i) {
      const Index k = risk_.at[std::size_t(i)];
      const double up_to = state.baseline.cumulative(i), jump = k >= 0 ? std::log(state.baseline.hazard(k)) : 0;
      const double log_right = jump + event_(i) * eta(i) - up_to * state.hazard(i);
      const double least = other.hazard.minCoeff();
      Vector each = other.share.array() * (-up_to * (other.hazard.array() - least)).exp();
      if (k >= 0) each = each.cwiseProduct(other.hazard);
      const double sum = each.sum();
      state.log_other(i) = jump + std::log(sum) - up_to * least;
      double value = log_right;
      if (i >= rows_.known) {
        state.other_hazard(i) = each.dot(other.hazard) / sum;
        state.other_square(i) = each.dot(other.hazard.cwiseAbs2()) / sum;
        const double log_odds = lambda(i) + log_right - state.log_other(i);
        state.prior_right(i) = 1 / (1 + std::exp(-lambda(i)));
        state.right(i) = 1 / (1 + std::exp(-log_odds));
        value = state.log_other(i) - log_one_plus_exp(lambda(i)) + log_one_plus_exp(log_odds);
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
      for (Index i = 0; i < open; ++i) made.value += weights(i) * (log_one_plus_exp(lambda(i)) - right(i) * lambda(i));
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
};

/// Steps until nothing moves; whether it does.
bool settle(const CoxMixture& mixture, CoxState& state, int steps, int& taken) {
  constexpr double still = 1e-9;
  for (int k = 0; k < steps; ++k, ++taken)
    if (mixture.step(state) < still) return true;
  return false;
}

void add_errors(const CoxMixture& mixture, const FamilyRows& rows, const LinkOdds& odds, const CoxState& at,
                FamilyMixtureFit& fit) {
  const Index p = at.w.size(), q = at.delta.size(), all = p + q;
  Vector theta(all);
  theta << at.w, at.delta;
  Matrix slope(all, all);
  for (Index k = 0; k < all; ++k) {
    constexpr double least = 1e-8;
    const double size = k < p ? std::sqrt(rows.design.col(k).squaredNorm() / double(rows.size())) : 1;
    const double step = 1e-4 / std::max(size, least);
    Vector up = theta, down = theta;
    up(k) += step;
    down(k) -= step;
    slope.col(k) = (mixture.profile(at, down) - mixture.profile(at, up)) / (2 * step);
  }
  const Matrix inverse = slope.inverse();
  Matrix meat = gram(mixture.with_errors_of_baseline(at));
  if (odds.rate_precision > 0) meat.bottomRightCorner(q, q) += distance_from_rate(odds, rows.known, at.delta).hessian;
  const Matrix sandwich = inverse * meat * inverse.transpose();
  fit.model_covariance = sandwich;
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
  constexpr int brief = 40, thorough = 3000;
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
      (void)settle(mixture, state, brief, taken);
      if (std::isfinite(state.log_likelihood) && (!best || state.log_likelihood > best->log_likelihood)) best = state;
    }
  }
  if (!best) best = mixture.begin(Vector::Zero(naive.size()), odds.start);
  CoxMixtureFit made;
  FamilyMixtureFit& fit = made.fit;
  fit.converged = settle(mixture, *best, thorough, taken);
  fit.iterations = taken;
  fit.parameters = best->w;
  fit.odds = best->delta;
  fit.link_probability = best->right;
  fit.log_likelihood = best->log_likelihood;
  fit.gain = best->log_likelihood - rows.weights.dot(best->log_other);
  add_errors(mixture, rows, odds, *best, fit);
  made.cumulative = best->baseline.cumulative;
  return made;
}

}  // namespace unshuffle
