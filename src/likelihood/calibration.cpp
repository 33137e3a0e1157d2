#include "likelihood/calibration.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/in_parallel.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/profile.hpp"

namespace unshuffle {

// N is close to minus the log-likelihood but not the same, so its gradient g(y; θ) need not have mean zero at the
// truth. Under the model its mean can be had to any accuracy by drawing samples: b(θ) = E_θ g(y*; θ). The root of
//   g(y; θ) - b(θ) = 0
// is consistent whatever N left out. b changes slowly with θ: it is drawn at the optimum, taken off as a tilt b·θ, the
// optimum is followed, and that again. With H the Hessian of N and V the covariance of the drawn gradients, the root
// has covariance H⁻¹ V H⁻¹ (1 + 1/samples).
namespace {

constexpr int samples = 48;
constexpr int rounds = 2;

Index quantile_count(Index rows) { return std::min<Index>(1000, rows); }

/// Evenly spaced values of the sorted responses, all of them where they are few.
Vector quantiles_of(const Matrix& y) {
  std::vector<double> sorted(y.data(), y.data() + y.rows());
  std::sort(sorted.begin(), sorted.end());
  const Index count = quantile_count(y.rows());
  return Vector::NullaryExpr(count, [&](Index k) { return sorted[std::size_t((2 * k + 1) * y.rows() / (2 * count))]; });
}

/// A sample of the model per column.
struct Drawn {
  Matrix gradients;
  Matrix quantiles;  ///< Of the responses; empty unless asked for.
};

Drawn drawn_samples(const Problem& problem, const Model& bound, const LikelihoodOptions& options, const Optimum& at,
                    std::uint64_t seed, bool with_quantiles) {
  Drawn made{Matrix(at.parameters.size() + 1, samples), {}};
  if (with_quantiles) made.quantiles.resize(quantile_count(problem.responses()), samples);
  in_parallel(samples, [&](std::size_t k) {
    // The same numbers in every round, so that rounds differ by θ only.
    RandomStream random(seed, Stream::calibration, k);
    const Links links = random_links(problem, random);
    const Problem drawn = drawn_from(problem, bound, at.parameters, std::sqrt(at.epsilon / 2), links, random);
    made.gradients.col(Index(k)) = LinkLikelihood(drawn, bound, options).at(at.theta(), false).gradient;
    if (with_quantiles) made.quantiles.col(Index(k)) = quantiles_of(drawn.y);
  });
  return made;
}

// The squared distance between the quantiles of the responses and their mean over samples of the model, on a
// logarithmic scale, against that of each sample. A thousandth of the responses' spread is as good as nothing.
double misfit_of(const Vector& observed, const Matrix& drawn) {
  constexpr double least_spread = 0.1;  // that of normal quantiles is about one half
  const Vector mean = drawn.rowwise().mean();
  const double nothing = 1e-6 * (observed.array() - observed.mean()).square().sum();
  const auto log_distance = [&](const auto& quantiles) {
    return std::log(std::max(nothing, (quantiles - mean).squaredNorm()));
  };
  const Vector of_samples = Vector::NullaryExpr(drawn.cols(), [&](Index k) { return log_distance(drawn.col(k)); });
  const double middle = of_samples.mean();
  const double spread = std::sqrt((of_samples.array() - middle).square().sum() / double(drawn.cols() - 1));
  return (log_distance(observed) - middle) / std::max(least_spread, spread);
}

Matrix sandwich(const Matrix& information, const Matrix& gradients) {
  const Eigen::LLT<Matrix> factor(information);
  if (factor.info() != Eigen::Success) return {};
  const Matrix centred = gradients.colwise() - gradients.rowwise().mean();
  const Matrix half = factor.solve(centred);
  const double scale = (1 + 1.0 / samples) / (samples - 1);
  const Index p = information.rows() - 1;
  return (half * half.transpose() * scale).topLeftCorner(p, p);
}

}  // namespace

Calibrated calibrated(const Problem& problem, const Model& bound, const LikelihoodOptions& options, const Optimum& from,
                      std::uint64_t seed) {
  Calibrated made{from, {}, {}};
  LinkLikelihood likelihood(problem, bound, options);
  Drawn drawn;
  for (int round = 0; round < rounds; ++round) {
    drawn = drawn_samples(problem, bound, options, made.optimum, seed, round + 1 == rounds);
    made.tilt = drawn.gradients.rowwise().mean();
    likelihood.set_tilt(made.tilt);
    const Optimum next =
        most_likely_near(likelihood, problem, bound, made.optimum.parameters, made.optimum.epsilon, 30);
    if (!next.parameters.allFinite()) break;
    made.optimum = next;
  }
  made.covariance = sandwich(likelihood.information(made.optimum.theta()), drawn.gradients);
  if (drawn.quantiles.size() > 0) made.misfit = misfit_of(quantiles_of(problem.y), drawn.quantiles);
  made.optimum.nats = from.nats;
  return made;
}

Matrix margins_of(const Calibrated& answer, const Problem& problem, const Model& bound,
                  const LikelihoodOptions& options) {
  const auto tilted = [&] {
    LinkLikelihood likelihood(problem, bound, options);
    likelihood.set_tilt(answer.tilt);
    return likelihood;
  };
  // The law of responses that have no partner is made up, so the likelihood is not quite one.
  const bool made_up = rows_left_over(problem).responses > 0;
  const Vector errors = answer.covariance.diagonal().cwiseSqrt();
  return profile_margins(tilted, answer.optimum, made_up ? errors : Vector::Zero(errors.size()));
}

}  // namespace unshuffle
