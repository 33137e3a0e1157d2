#include "likelihood/followed_mixture.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "core/special.hpp"
#include "likelihood/noise_law.hpp"

namespace unshuffle {

// The mixture of mixture.cpp with two changes. Right links have noise of an estimated law g instead of a normal one:
//   π_i = (1-α) g(r_i) / ((1-α) g(r_i) + α q_i),   w by least squares with weights π,   g from residuals weighted by π.
// For any g of mean zero, E[π(r) r | z] = (1-α) ∫ g(r) r dr = 0: the equation for w is unbiased whatever the law, and
// at α = 0 it is least squares. α is not maximised: with g free, a tail may be noise or wrong links, and the likelihood
// alone cannot distinguish them. α increases from zero in steps, each starting from the previous answer, which follows
// the solution continuously from least squares as links are given up; other solutions, even more likely ones (rows of a
// curve that happen to lie on a plane), are not sought. The answer is the average over these steps weighted by
// likelihood, and its covariance includes the uncertainty about α.
//
// How likely each α is rests on the straight line and on one law for all right links. A curve or noise that varies
// otherwise than with the prediction makes differences of many nats between α in large tables, in favour of none as
// often as not. So the rows count as a hundred at most for α (Miller & Dunson 2019), however many there are: where
// right and wrong links look different, a hundred suffice. docs/mathematics.md §8.
namespace {

constexpr std::array rates{0.0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
constexpr int rounds_per_rate = 25;
constexpr double settled = 1e-6;             // nats per row
constexpr Index rows_to_walk_with = 20'000;  // all rows are for the answer
constexpr double rows_trusted = 100;         // to say how many links are wrong
constexpr double negligible = 2e-3;      // share of the likelihood below which a rate adds nothing to the covariance
constexpr double least_curvature = 0.1;  // of the equation for w, beside that with all doubts settled
constexpr double limit_errors = 2.326;   // standard errors beyond the bound on α, one in a hundred

/// Columns in standard deviations, centred if one is constant, so that units do not matter.
struct Coordinates {
  Matrix columns;  // rows × parameters
  Matrix to_parameters;
  Index constant = -1;

  explicit Coordinates(const Matrix& jacobian) : columns(jacobian) {
    const Index p = jacobian.cols();
    to_parameters = Matrix::Identity(p, p);
    const Eigen::RowVectorXd mean = jacobian.colwise().mean();
    for (Index k = 0; k < p && constant < 0; ++k) {
      const double sd = std::sqrt((jacobian.col(k).array() - mean(k)).square().mean());
      if (mean(k) != 0 && sd <= 1e-12 * std::abs(mean(k))) constant = k;
    }
    for (Index k = 0; k < p; ++k) {
      if (k == constant) continue;
      const double middle = constant >= 0 ? mean(k) : 0;
      const double spread = std::sqrt((jacobian.col(k).array() - middle).square().mean());
      const double unit = spread > 0 ? spread : 1;
      columns.col(k) = (jacobian.col(k).array() - middle) / unit;
      to_parameters(k, k) = 1 / unit;
      if (constant >= 0) to_parameters(constant, k) = -middle / unit / mean(constant);
    }
  }

  /// All but the constant one.
  [[nodiscard]] std::vector<Index> slopes() const {
    std::vector<Index> which;
    for (Index k = 0; k < columns.cols(); ++k) {
      if (k != constant) which.push_back(k);
    }
    return which;
  }
};

double chi_squared_of(const Vector& value, const Matrix& covariance) {
  const Vector unit = covariance.diagonal().unaryExpr([](double d) { return d > 0 ? 1 / std::sqrt(d) : 0.0; });
  Eigen::CompleteOrthogonalDecomposition<Matrix> solver;
  solver.setThreshold(1e-10);
  solver.compute(unit.asDiagonal() * covariance * unit.asDiagonal());
  if (solver.rank() == 0) return 1;
  const Vector scaled = unit.cwiseProduct(value);
  return chi_squared_tail(std::max(0.0, scaled.dot(solver.solve(scaled))), double(solver.rank()));
}

/// EM at one α: its result and intermediate quantities.
struct Step {
  double rate;
  Vector at;     // in the coordinates
  Vector right;  // π
  Vector residual;
  Vector level;
  NoiseLaw law;
  double log_likelihood;
};

class Walk {
 public:
  Walk(const Model& bound, const CandidateLinks& links, const Vector& w)
      : coordinates_(linked_jacobian(bound, links.rows, w)),
        response_(residuals(bound, links.rows, Vector::Zero(w.size())).col(0)),
        weights_(links.weights_or_one()),
        known_(links.known) {
    Matrix t = links.rows.y;
    if (links.rows.x.cols() > 0 && bound.additive() != nullptr)
      t -= bound.additive()->part(Side::response, links.rows.x, w);
    // Responses cluster where the noise does not: the bandwidth of the estimated law follows the quartiles.
    log_other_ = NoiseLaw(t.col(0), weights_).log_at(t.col(0), Vector::Zero(t.rows()));
  }

  [[nodiscard]] const Coordinates& coordinates() const { return coordinates_; }
  [[nodiscard]] int iterations() const { return iterations_; }
  [[nodiscard]] const Vector& weights() const { return weights_; }

  /// From least squares.
  [[nodiscard]] Step first() {
    const Vector all = Vector::Ones(response_.size());
    const Vector at = solved(all);
    const Vector residual = response_ - coordinates_.columns * at;
    return settle({0, at, all, residual, {}, NoiseLaw(residual, weights_), 0}, 0);
  }

  /// The next α, from the step before.
  [[nodiscard]] Step settle(Step from, double rate) {
    Step step = std::move(from);
    step.rate = rate;
    double last = -HUGE_VAL;
    for (int round = 0; round < rounds_per_rate; ++round) {
      expect(step);
      if (round > 5 && step.log_likelihood - last < settled * double(response_.size())) break;
      last = step.log_likelihood;
      const Vector weights = step.right.cwiseProduct(weights_);
      step.at = solved(step.right);
      step.residual = response_ - coordinates_.columns * step.at;
      step.law.renew(step.residual, step.level, weights);
      ++iterations_;
    }
    return step;
  }

  /// Each row's contribution to the error of w at this α, corrected for leverage (HC3).
  [[nodiscard]] Matrix influence(const Step& step) const {
    const Matrix& x = coordinates_.columns;
    const Vector& r = step.residual;
    const Vector right = step.right.cwiseProduct(weights_);
    const Vector doubt = right.cwiseProduct((1 - step.right.array()).matrix());
    const Vector slope = step.law.slope_at(r, step.level);
    const Matrix curvature = weighted_gram(x, right + r.cwiseProduct(doubt).cwiseProduct(slope));
    Matrix decided = weighted_gram(x, right);
    decided.diagonal().array() += 1e-9 * decided.trace() / double(decided.rows());
    const Eigen::LLT<Matrix> factor(decided);
    const Matrix half = factor.matrixL().solve(curvature);
    const Matrix relative = factor.matrixL().solve(half.transpose());
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(0.5 * (relative + relative.transpose()));
    const Vector inverse = eigen.eigenvalues().cwiseMax(least_curvature).cwiseInverse();
    const Matrix middle = eigen.eigenvectors() * inverse.asDiagonal() * eigen.eigenvectors().transpose();
    const Matrix whitened = factor.matrixL().solve(x.transpose()).transpose();
    const Vector leverage = step.right.cwiseProduct(whitened.rowwise().squaredNorm());
    const Vector score = right.array() * r.array() / (1 - leverage.array()).max(0.2);
    const Matrix scores = score.asDiagonal() * whitened * middle;
    return factor.matrixU().solve(scores.transpose()).transpose();
  }

 private:
  [[nodiscard]] Vector solved(const Vector& right) const {
    const Vector weights = right.cwiseProduct(weights_);
    const Matrix& x = coordinates_.columns;
    return balanced_inverse(weighted_gram(x, weights)) * (x.transpose() * weights.cwiseProduct(response_));
  }

  void expect(Step& step) const {
    step.level = levels_of(coordinates_.columns * step.at);
    const Vector log_right = step.law.log_at(step.residual, step.level);
    step.log_likelihood = 0;
    step.right.resize(response_.size());
    for (Index i = 0; i < response_.size(); ++i) {
      const double rate = i < known_ ? 0 : step.rate;
      const double right = std::log1p(-rate) + log_right(i);
      const double wrong = rate > 0 ? std::log(rate) + log_other_(i) : -HUGE_VAL;
      const double larger = std::max(right, wrong);
      const double both = larger + std::log(std::exp(right - larger) + std::exp(wrong - larger));
      step.right(i) = std::exp(right - both);
      step.log_likelihood += weights_(i) * both;
    }
  }

  Coordinates coordinates_;
  Vector response_;
  Vector weights_;
  Index known_;
  Vector log_other_;
  int iterations_ = 0;
};

/// Shares of the likelihood to this power, each α standing for the stretch around it.
Vector posterior(const std::vector<Step>& steps, double power) {
  const auto count = static_cast<Index>(steps.size());
  Vector shares(count);
  double best = -HUGE_VAL;
  for (const Step& step : steps) best = std::max(best, step.log_likelihood);
  for (Index k = 0; k < count; ++k) {
    const double rate = steps[std::size_t(k)].rate;
    const double below = k > 0 ? steps[std::size_t(k - 1)].rate : rate;
    const double above = k + 1 < count ? steps[std::size_t(k + 1)].rate : rate;
    shares(k) = std::exp(power * (steps[std::size_t(k)].log_likelihood - best)) * std::max(0.5 * (above - below), 1e-3);
  }
  return shares / shares.sum();
}

CandidateLinks spaced_sample(const CandidateLinks& links) {
  std::vector<Index> chosen;
  for (Index k = 0; k < rows_to_walk_with; ++k) chosen.push_back(k * links.size() / rows_to_walk_with);
  CandidateLinks sample{.rows = subset(links.rows, chosen)};
  if (links.weights.size() > 0) sample.weights = links.weights(chosen);
  for (const Index i : chosen) sample.known += i < links.known ? 1 : 0;
  if (!links.blocks.empty()) {
    for (const Index i : chosen) sample.blocks.push_back(links.blocks[std::size_t(i)]);
  }
  return sample;
}

/// Least squares with a share of the links wrong, and each row's contribution to its error.
struct AtRate {
  Vector w;
  Matrix influence;
};

AtRate adjusted_at(const Model& bound, const CandidateLinks& links, const LeastSquares& linked, double rate) {
  const LinkedRows expected = averaged(links, rate);
  const Vector weights = links.weights_or_one();
  const LeastSquares solved = least_squares(bound, expected, linked.parameters, weights);
  const Matrix jacobian = linked_jacobian(bound, expected, solved.parameters);
  const Matrix r = residuals(bound, expected, solved.parameters);
  Matrix scores = Matrix::Zero(links.size(), jacobian.cols());
  for (Index k = 0; k < r.cols(); ++k) {
    scores.array() +=
        jacobian.middleRows(k * links.size(), links.size()).array().colwise() * (weights.array() * r.col(k).array());
  }
  return {solved.parameters, scores * balanced_inverse(solved.matrix)};
}

/// A walk over every α the bound allows, and the share of the likelihood each has.
struct Walked {
  Walk walk;
  std::vector<Step> steps;
  Vector shares;  // coarsened
  Vector exact;   // as if the model were

  Walked(Walk start, const MismatchRate& largest) : walk(std::move(start)), steps{walk.first()} {
    const double limit = std::min(0.94, largest.rate + limit_errors * std::sqrt(largest.variance));
    for (const double rate : rates) {
      if (rate > 0 && rate < limit) steps.push_back(walk.settle(steps.back(), rate));
    }
    if (limit > steps.back().rate + 0.02) steps.push_back(walk.settle(steps.back(), limit));
    shares = posterior(steps, rows_trusted / (rows_trusted + double(steps.front().residual.size())));
    exact = posterior(steps, 1);
  }

  [[nodiscard]] std::size_t most_likely() const {
    const auto less = [](const Step& a, const Step& b) { return a.log_likelihood < b.log_likelihood; };
    return std::size_t(std::max_element(steps.begin(), steps.end(), less) - steps.begin());
  }

  [[nodiscard]] Vector mean(const Vector& weights) const {
    Vector sum = Vector::Zero(steps.front().at.size());
    for (std::size_t k = 0; k < steps.size(); ++k) sum += weights(Index(k)) * steps[k].at;
    return sum;
  }

  /// Of this mean: that α is not known.
  [[nodiscard]] Matrix doubt(const Vector& weights) const {
    const Vector middle = mean(weights);
    Matrix sum = Matrix::Zero(middle.size(), middle.size());
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const Vector apart = steps[k].at - middle;
      sum += weights(Index(k)) * apart * apart.transpose();
    }
    return sum;
  }

  [[nodiscard]] Vector right() const {
    Vector sum = Vector::Zero(steps.front().right.size());
    for (std::size_t k = 0; k < steps.size(); ++k) sum += shares(Index(k)) * steps[k].right;
    return sum;
  }
};

/// The share of wrong links and the noise, averaged over the walk.
void average_rate_and_noise(const Walked& walked, FollowedMixture& made) {
  for (std::size_t k = 0; k < walked.steps.size(); ++k)
    made.mismatch_rate += walked.shares(Index(k)) * walked.steps[k].rate;
  const Vector& weights = walked.walk.weights();
  double rate_variance = 0;
  for (std::size_t k = 0; k < walked.steps.size(); ++k) {
    const Step& step = walked.steps[k];
    const double share = walked.shares(Index(k));
    rate_variance += share * std::pow(step.rate - made.mismatch_rate, 2);
    const double rows = step.right.dot(weights);
    const double squares = step.right.cwiseProduct(weights).dot(step.residual.cwiseAbs2());
    made.noise_variance += share * squares / std::max(rows - double(step.at.size()), 0.3 * rows);
  }
  made.rate_sd = std::sqrt(rate_variance);
}

/// The averages with their covariances, and how well the answer agrees with regression on all rows, adjusted for the
/// same α. `factor` shrinks the covariances where the walk saw a part of the rows.
void compare_with_regression(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                             const Walked& walked, double factor, FollowedMixture& made) {
  const Matrix& back = walked.walk.coordinates().to_parameters;
  const Index p = back.rows();
  Vector regression = Vector::Zero(p);
  Matrix sampling = Matrix::Zero(p, p), sampling_if_exact = Matrix::Zero(p, p);
  Matrix difference = Matrix::Zero(links.size(), p);
  double compared = 0;
  for (std::size_t k = 0; k < walked.steps.size(); ++k) {
    const Step& step = walked.steps[k];
    const double share = walked.shares(Index(k)), if_exact = walked.exact(Index(k));
    if (std::max(share, if_exact) < negligible) continue;
    const Matrix influence = walked.walk.influence(step);
    const Matrix squares = gram(influence);
    sampling += share * squares;
    sampling_if_exact += if_exact * squares;
    const AtRate other = adjusted_at(bound, links, linked, step.rate);
    difference += share * (influence * back.transpose() - other.influence);
    regression += share * other.w;
    compared += share;
  }
  const auto covariance = [&](const Matrix& of_rows, const Vector& shares) -> Matrix {
    return back * (factor * of_rows + walked.doubt(shares)) * back.transpose();
  };
  made.parameters = back * walked.mean(walked.shares);
  made.covariance = covariance(sampling, walked.shares);
  made.if_exact = {back * walked.mean(walked.exact), covariance(sampling_if_exact, walked.exact)};
  // Both in these coordinates; the constant column carries no information about the links.
  const Matrix to_coordinates = back.inverse();
  const std::vector<Index> slopes = walked.walk.coordinates().slopes();
  const Vector contrast = to_coordinates * (made.parameters - regression / compared);
  const Matrix spread = difference / compared * to_coordinates.transpose();
  made.agreement = chi_squared_of(contrast(slopes), gram(spread(Eigen::all, slopes)));
}

/// All rows move the solution at the most likely α, and the averages with it.
void settle_on_all_rows(const Model& bound, const CandidateLinks& all, const Vector& start, const Vector& at_mode,
                        Step from, FollowedMixture& made) {
  const double rate = from.rate;
  Walk whole(bound, all, start);
  from.at = whole.coordinates().to_parameters.inverse() * at_mode;
  from.residual = residuals(bound, all.rows, at_mode).col(0);
  const Step end = whole.settle(std::move(from), rate);
  const Vector moved = whole.coordinates().to_parameters * end.at - at_mode;
  made.parameters += moved;
  made.if_exact.parameters += moved;
  made.link_probability = end.right;
}

}  // namespace

bool can_be_followed(const Model& bound, const CandidateLinks& links) {
  return averages_over_partners(bound) && links.rows.y.cols() == 1 && links.open() > 0;
}

FollowedMixture follow_mixture(const Model& bound, const CandidateLinks& all, const LeastSquares& linked,
                               const MismatchRate& largest) {
  const bool sampled = all.size() > 2 * rows_to_walk_with;
  const CandidateLinks sample = sampled ? spaced_sample(all) : CandidateLinks{};
  const CandidateLinks& links = sampled ? sample : all;
  const Walked walked(Walk(bound, links, linked.parameters), largest);
  const std::size_t mode = walked.most_likely();
  const Step& most_likely = walked.steps[mode];
  FollowedMixture made;
  average_rate_and_noise(walked, made);
  compare_with_regression(bound, links, linked, walked, double(links.size()) / double(all.size()), made);
  made.rate_is_limited = mode + 1 == walked.steps.size() && most_likely.rate > 0;
  made.log_likelihood = most_likely.log_likelihood;
  made.link_probability = walked.right();
  const Vector at_mode = walked.walk.coordinates().to_parameters * most_likely.at;
  made.independence = mode == 0 ? 1 : independence_of_features(bound, links, at_mode, most_likely.right);
  if (sampled) settle_on_all_rows(bound, all, linked.parameters, at_mode, most_likely, made);
  made.iterations = walked.walk.iterations();
  return made;
}

double independence_of_features(const Model& bound, const CandidateLinks& links, const Vector& w,
                                const Vector& link_probability) {
  constexpr double furthest = 3;
  const Index open = links.open();
  if (open == 0) return 1;
  const Coordinates coordinates(linked_jacobian(bound, links.rows, w).topRows(links.size()));
  const Vector wrong = (1 - link_probability.tail(open).array()) * links.weights_or_one().tail(open).array();
  const auto p_of = [&](Matrix features) {
    features.rowwise() -= features.colwise().mean().eval();
    const Matrix scores = (wrong.array() - wrong.mean()).matrix().asDiagonal() * features;
    return chi_squared_of(scores.colwise().sum().transpose(), gram(scores));
  };
  const Vector f = predict_pairs(bound, links.rows.x, links.rows.z, w).col(0).tail(open);
  const double sd = std::sqrt((f.array() - f.mean()).square().mean());
  if (!(sd > 0)) return 1;
  Matrix of_prediction(open, 2);
  of_prediction.col(0) = ((f.array() - f.mean()) / sd).max(-furthest).min(furthest);
  of_prediction.col(1) = of_prediction.col(0).cwiseAbs2();
  const Matrix columns = coordinates.columns(Eigen::all, coordinates.slopes()).bottomRows(open);
  return std::min(p_of(of_prediction), columns.cols() > 0 ? p_of(columns) : 1.0);
}

SpreadRegression spread_regression(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                                   double largest) {
  constexpr int places = 9;
  const double limit = std::min(largest, 0.9);
  const Index p = linked.parameters.size();
  SpreadRegression made{Vector::Zero(p), {}, Matrix::Zero(p, p)};
  Vector furthest;
  for (int k = 0; k < places; ++k) {
    const AtRate at = adjusted_at(bound, links, linked, limit * k / (places - 1));
    made.parameters += at.w / places;
    made.sampling += gram(at.influence) / places;
    furthest = at.w;
  }
  // Ignorance of the share counts as two standard errors to the farther end.
  const Vector reach = 0.5 * (furthest - made.parameters);
  made.covariance = made.sampling + reach * reach.transpose();
  return made;
}

}  // namespace unshuffle
