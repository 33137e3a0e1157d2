#include "likelihood/mixture_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "core/squares.hpp"

namespace unshuffle {

LimitedBelief limited(const LinkBelief& estimate, const BeliefLimits& limits) {
  constexpr double least_rate = 1e-9;  // a rate of 0 or 1 would stay there
  const bool known = limits.known_noise_variance > 0;
  const double noise = known ? limits.known_noise_variance : estimate.noise_variance;
  return {
      {.noise_variance = std::max(limits.least_noise_variance, noise),
       .mismatch_rate = std::clamp(std::min(estimate.mismatch_rate, limits.largest_rate), least_rate, 1 - least_rate)},
      known || noise <= limits.least_noise_variance,
      estimate.mismatch_rate >= limits.largest_rate};
}

double least_noise_variance(const Matrix& y) { return 1e-12 * squares_about_mean(y) / double(y.size()) + 1e-300; }

LimitedBelief maximised(const RightLinks& links, const BeliefLimits& limits) {
  const double noise_variance = links.squares / std::max(links.numbers, std::numeric_limits<double>::min());
  return limited({noise_variance, links.open > 0 ? 1 - links.open_right / links.open : 0.5}, limits);
}

Expectation expect_links(const LinkedResiduals& rows, const LinkBelief& belief) {
  const Matrix& r = rows.residual;
  const double log_unit = -0.5 * static_cast<double>(r.cols()) * std::log(2 * std::numbers::pi * belief.noise_variance);
  const double log_right = std::log1p(-belief.mismatch_rate), log_wrong = std::log(belief.mismatch_rate);
  Expectation made;
  made.probability.resize(r.rows());
  for (Index i = 0; i < r.rows(); ++i) {
    const double right = log_unit - 0.5 * r.row(i).squaredNorm() / belief.noise_variance;
    if (i < rows.known) {
      made.probability[i] = 1;
      made.log_likelihood += rows.weights[i] * right;
      continue;
    }
    const double a = log_right + right, b = log_wrong + rows.log_other[i];
    const double both = std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
    made.probability[i] = std::exp(a - both);
    made.log_likelihood += rows.weights[i] * both;
  }
  return made;
}

MixtureSums::MixtureSums(Index p)
    : right(Vector::Zero(p)),
      matrix(Matrix::Zero(p, p)),
      doubt(Matrix::Zero(p + 2, p + 2)),
      scores(Matrix::Zero(p + 2, p + 2)) {}

MixtureSums& MixtureSums::operator+=(const MixtureSums& more) {
  log_likelihood += more.log_likelihood;
  links += more.links;
  open += more.open;
  squares += more.squares;
  right += more.right;
  matrix += more.matrix;
  doubt += more.doubt;
  scores += more.scores;
  return *this;
}

MixtureSums mixture_sums(const LinkedResiduals& rows, const Matrix& jacobian, const Expectation& expected,
                         const LinkBelief& belief) {
  const Matrix& r = rows.residual;
  const Index n = r.rows(), p = jacobian.cols(), open = n - rows.known;
  const double variance = belief.noise_variance;
  const Vector& pi = expected.probability;
  const Vector weighted = rows.weights.cwiseProduct(pi);
  const Vector square = r.rowwise().squaredNorm();
  MixtureSums sums(p);
  Matrix d = Matrix::Zero(n, p + 2);
  for (Index k = 0; k < r.cols(); ++k) {
    const auto part = jacobian.middleRows(k * n, n);
    sums.matrix += weighted_gram(part, weighted);
    d.leftCols(p).array() += part.array().colwise() * (r.col(k).array() / variance);
  }
  d.col(p) = 0.5 * (square.array() / variance - static_cast<double>(r.cols()));
  d.col(p + 1).tail(open).setOnes();
  sums.log_likelihood = expected.log_likelihood;
  sums.links = weighted.sum();
  sums.open = rows.weights.tail(open).sum();
  sums.squares = weighted.dot(square);
  sums.right = variance * (d.leftCols(p).transpose() * weighted);
  sums.doubt = weighted_gram(d, weighted.array() * (1 - pi.array()));
  d.array().colwise() *= pi.array();
  d.col(p + 1).tail(open).array() -= 1 - belief.mismatch_rate;
  sums.scores = weighted_gram(d, rows.weights.cwiseAbs2());
  return sums;
}

// With θ = (w, log σ², logit(1-α)) the complete-data score of a link that is right, less that of one that is not, is d,
// the observed score is s, and the observed information is by Louis (1982)
//   I = Σ π D + α(1-α) e eᵀ - π(1-π) d dᵀ,   D = [JᵀJ/σ², Jᵀr/σ²; ·, |r|²/(2σ²)].
// The sandwich is I⁻¹ (Σ s sᵀ) I⁻¹. Given parameters are not estimated: their rows and columns are removed from I. If α
// was given with an error, the others move with it by -I⁻¹ times its column. docs/mathematics.md §9.2.
MixtureCovariance mixture_covariance(const MixtureSums& sums, const LimitedBelief& belief, double rate_variance) {
  const Index p = sums.right.size(), noise = p, rate = p + 1;
  const double doubt_of_link = belief.mismatch_rate * (1 - belief.mismatch_rate);  // dα/d(logit α)
  Matrix information = -sums.doubt;
  information.topLeftCorner(p, p) += sums.matrix / belief.noise_variance;
  information.col(noise).head(p) += sums.right / belief.noise_variance;
  information.row(noise).head(p) += sums.right.transpose() / belief.noise_variance;
  information(noise, noise) += 0.5 * sums.squares / belief.noise_variance;
  information(rate, rate) += sums.open > 0 ? sums.open * doubt_of_link : 1.0;
  Vector by_rate = belief.rate_is_limited ? Vector(information.col(rate)) : Vector::Zero(p + 2);
  const auto leave_out = [&](Index k) {
    information.row(k).setZero();
    information.col(k).setZero();
    information(k, k) = 1;
    by_rate(k) = 0;
  };
  if (belief.noise_is_given) leave_out(noise);
  if (belief.rate_is_limited) leave_out(rate);
  const Matrix inverse = balanced_inverse(information);
  Matrix model = inverse.topLeftCorner(p, p), sandwich = (inverse * sums.scores * inverse).topLeftCorner(p, p);
  if (belief.rate_is_limited) {
    const Vector moved = (inverse * by_rate).head(p) / doubt_of_link;
    model += rate_variance * moved * moved.transpose();
    sandwich += rate_variance * moved * moved.transpose();
  }
  return {model, sandwich};
}

}  // namespace unshuffle
