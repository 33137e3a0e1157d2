#include "likelihood/calibration.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/in_parallel.hpp"
#include "core/normal.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/group_checks.hpp"
#include "likelihood/profile.hpp"
#include "likelihood/widened.hpp"
#include "objective/batch.hpp"

namespace unshuffle {

// N approximates minus the log-likelihood, so its gradient g(y; θ) need not have mean zero at the truth. Under the
// model that mean can be simulated to any accuracy: b(θ) = E_θ g(y*; θ). The root of
//   g(y; θ) - b(θ) = 0
// is consistent whatever N neglects. b varies slowly with θ: it is simulated at the optimum and subtracted as a tilt
// b·θ, the optimum is updated, and the step is repeated. With H the Hessian of N and V the covariance of the simulated
// gradients, the root has covariance H⁻¹ V H⁻¹ (1 + 1/samples). docs/mathematics.md §5.5.
namespace {

constexpr int samples = 48;
constexpr int calibration_rounds = 2;

Index quantile_count(Index rows) { return std::min<Index>(1000, rows); }

/// Evenly spaced values of the sorted responses, all of them where they are few; group by group.
Vector quantiles_of(const Problem& problem, const std::vector<Block>& blocks) {
  std::vector<double> all;
  for (const Block& block : blocks) {
    std::vector<double> sorted;
    for (const Index i : block.response_rows) sorted.push_back(problem.y(i, 0));
    std::sort(sorted.begin(), sorted.end());
    const auto rows = static_cast<Index>(sorted.size());
    const Index count = std::max<Index>(1, quantile_count(problem.responses()) * rows / problem.responses());
    for (Index k = 0; k < count; ++k) all.push_back(sorted[std::size_t((2 * k + 1) * rows / (2 * count))]);
  }
  return Eigen::Map<const Vector>(all.data(), Index(all.size()));
}

// Departures from the model that are common in real tables, each at a common strength: a skewness of one, tails of t
// with four degrees of freedom, a standard deviation that changes by a quarter per standard deviation of the
// prediction, a curvature of a tenth of the prediction's spread.
enum class Assumption { as_modelled, skewed, skewed_left, heavy_tailed, growing, shrinking, bent_up, bent_down };
constexpr std::array otherwise{std::pair{Assumption::skewed, "the noise is skewed to the right"},
                               std::pair{Assumption::skewed_left, "the noise is skewed to the left"},
                               std::pair{Assumption::heavy_tailed, "the noise has heavy tails"},
                               std::pair{Assumption::growing, "the noise grows with the prediction"},
                               std::pair{Assumption::shrinking, "the noise shrinks with the prediction"},
                               std::pair{Assumption::bent_up, "the response bends up"},
                               std::pair{Assumption::bent_down, "the response bends down"}};

double sum_of_squares(RandomStream& random, int count) {
  double sum = 0;
  for (int k = 0; k < count; ++k) sum += std::pow(random.normal(), 2);
  return sum;
}

/// Of mean zero and variance one.
double noise_under(Assumption assumption, RandomStream& random) {
  switch (assumption) {
    case Assumption::skewed:
    case Assumption::skewed_left: {
      const double drawn = (sum_of_squares(random, 8) - 8) / 4;  // χ² with eight degrees of freedom: skewness one
      return assumption == Assumption::skewed ? drawn : -drawn;
    }
    case Assumption::heavy_tailed: {
      const double normal = random.normal();
      return normal / std::sqrt(2 * sum_of_squares(random, 4) / 4);
    }
    default:
      return random.normal();
  }
}

/// Responses of the model at this optimum, with one assumption changed.
Problem drawn_under(Assumption assumption, const Problem& problem, const Model& bound, const Optimum& at,
                    RandomStream& random) {
  const Links links = random_links(problem, random);
  const double sd = std::sqrt(at.epsilon / 2);
  if (assumption == Assumption::as_modelled)
    return drawn_from(problem, bound, at.parameters, Matrix::Constant(1, 1, sd), links, random);
  constexpr double growth = 0.25, bend = 0.1, of_noise = 0.5;
  const LinkedRows rows = link(problem, bound, links.responses, links.features);
  const Vector f = predict_pairs(bound, rows.x, rows.z, at.parameters).col(0);
  const double mean = f.mean(), spread = std::sqrt((f.array() - mean).square().mean());
  const Vector level = spread > 0 ? Vector((f.array() - mean) / spread) : Vector(Vector::Zero(f.size()));
  const double most = std::min(bend * spread, of_noise * sd);
  const double curve = assumption == Assumption::bent_up ? most : assumption == Assumption::bent_down ? -most : 0;
  const double change = assumption == Assumption::growing ? growth : assumption == Assumption::shrinking ? -growth : 0;
  Problem drawn = problem;
  for (Index k = 0; k < links.size(); ++k) {
    const double l = level(k);
    drawn.y(links.responses[std::size_t(k)], 0) =
        f(k) + curve * (l * l - 1) / std::sqrt(2.0) +
        sd * std::exp(change * std::clamp(l, -2.5, 2.5) - change * change) * noise_under(assumption, random);
  }
  return drawn;
}

/// A sample of the model per column.
struct Drawn {
  Matrix gradients;
  Matrix quantiles;  ///< Of the responses.
};

/// The model that samples are drawn from.
struct Source {
  const Problem& problem;
  const Model& bound;
  const LikelihoodOptions& options;
  std::vector<Block> blocks;
  std::uint64_t seed;
  bool gradients = true;  ///< Whether their means are needed.
};

/// Rows that samples are drawn of: of many groups summed exactly, whole ones in even steps.
Problem rows_to_simulate(const Problem& problem, const std::vector<Block>& blocks) {
  const auto step = std::size_t((problem.responses() + many_rows - 1) / many_rows);
  if (step <= 1) return problem;
  std::vector<Index> responses, features;
  for (std::size_t k = 0; k < blocks.size(); k += step) {
    responses.insert(responses.end(), blocks[k].response_rows.begin(), blocks[k].response_rows.end());
    features.insert(features.end(), blocks[k].feature_rows.begin(), blocks[k].feature_rows.end());
  }
  return some_rows(problem, responses, features);
}

Drawn drawn_samples(const Source& source, const Optimum& at, Assumption assumption, int count) {
  std::vector<Vector> gradients(static_cast<std::size_t>(count)), quantiles(static_cast<std::size_t>(count));
  in_parallel(std::size_t(count), [&](std::size_t k) {
    // The same numbers in every round, so that rounds differ by θ only.
    RandomStream random(source.seed, Stream::calibration, k);
    const Problem drawn = drawn_under(assumption, source.problem, source.bound, at, random);
    gradients[k] = source.gradients ? LinkLikelihood(drawn, source.bound, source.options).at(at.theta(), false).gradient
                                    : Vector(Vector::Zero(at.parameters.size() + 1));
    quantiles[k] = quantiles_of(drawn, source.blocks);
  });
  Drawn made{Matrix(at.parameters.size() + 1, count), Matrix(quantiles.front().size(), count)};
  for (Index k = 0; k < count; ++k) {
    made.gradients.col(k) = gradients[std::size_t(k)];
    made.quantiles.col(k) = quantiles[std::size_t(k)];
  }
  return made;
}

// The log of the squared distance between the quantiles of the responses and their mean over samples of the model,
// compared with the same for each sample. A thousandth of the responses' spread counts as zero.
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

// If an assumption is wrong, the gradient at θ has a different mean, and the root moves by H⁻¹ times the difference.
// The responses would have told where they fit better than they would under the assumption, by more than chance.
std::vector<WhatIf> other_assumptions(const Source& source, const Calibrated& at, const Matrix& information,
                                      double scale) {
  constexpr int count = 16;
  constexpr double clearly = 3;  // standard deviations
  const Eigen::LLT<Matrix> factor(information);
  std::vector<WhatIf> made;
  if (factor.info() != Eigen::Success) return made;
  for (const auto& [assumption, words] : otherwise) {
    const Drawn drawn = drawn_samples(source, at.optimum, assumption, count);
    const Vector mean = drawn.gradients.rowwise().mean();
    Vector moved = factor.solve(at.tilt - scale * mean);
    if (at.exact) {  // as far as it is more than the error of simulation
      const Matrix apart = drawn.gradients.colwise() - mean;
      const double error = scale * scale * apart.cwiseProduct(factor.solve(apart)).sum() / double(count * (count - 1));
      const double size = moved.dot(information * moved);
      moved *= std::max(0.0, 1 - error / std::max(size, std::numeric_limits<double>::min()));
    }
    double misfit = 0;
    for (Index k = 0; k < count; ++k) misfit += misfit_of(drawn.quantiles.col(k), at.sampled_quantiles) / count;
    made.push_back({words, moved.head(moved.size() - 1), misfit > std::max(at.misfit, 0.0) + clearly});
  }
  return made;
}

}  // namespace

void Calibrated::widen(const Vector& errors) { covariance = widened(covariance, errors); }

Matrix Calibrated::doubted_covariance() const {
  Matrix made = covariance;
  // Two directions of one doubt are one doubt.
  for (const WhatIf& other : what_if) {
    if (!other.ruled_out) made += 0.5 * other.shift * other.shift.transpose();
  }
  return made;
}

namespace {

/// Without approximation the gradient has mean zero, and its covariance is the curvature.
Calibrated without_bias(LinkLikelihood& likelihood, const Problem& problem, const Model& bound,
                        const LikelihoodOptions& options, const Optimum& from, std::uint64_t seed) {
  Calibrated made{from, Vector::Zero(from.parameters.size() + 1), {}};
  made.exact = true;
  const Eigen::LLT<Matrix> factor(likelihood.information(from.theta()));
  const Index p = from.parameters.size();
  if (factor.info() == Eigen::Success)
    made.covariance = factor.solve(Matrix::Identity(p + 1, p + 1)).topLeftCorner(p, p);
  const Problem part = rows_to_simulate(problem, blocks_of(problem));
  const Source source{part, bound, options, blocks_of(part), seed, false};
  made.sampled_quantiles = drawn_samples(source, from, Assumption::as_modelled, samples).quantiles;
  made.misfit = misfit_of(quantiles_of(part, source.blocks), made.sampled_quantiles);
  return made;
}

}  // namespace

Calibrated calibrated(const Problem& problem, const Model& bound, const LikelihoodOptions& options, const Optimum& from,
                      std::uint64_t seed) {
  LinkLikelihood likelihood(problem, bound, options);
  if (likelihood.sums().all_exact()) return without_bias(likelihood, problem, bound, options, from, seed);
  const Source source{problem, bound, options, blocks_of(problem), seed};
  Calibrated made{from, {}, {}};
  Drawn drawn;
  for (int round = 0; round < calibration_rounds; ++round) {
    drawn = drawn_samples(source, made.optimum, Assumption::as_modelled, samples);
    made.tilt = drawn.gradients.rowwise().mean();
    likelihood.set_tilt(made.tilt);
    const Optimum next = likelihood.most_likely_near(made.optimum, 30);
    if (!next.parameters.allFinite()) break;
    made.optimum = next;
  }
  const Matrix information = likelihood.information(made.optimum.theta());
  made.covariance = sandwich(information, drawn.gradients);
  made.misfit = misfit_of(quantiles_of(problem, source.blocks), drawn.quantiles);
  made.sampled_quantiles = std::move(drawn.quantiles);
  made.optimum.nats = from.nats;
  return made;
}

void question(Calibrated& answer, const Problem& problem, const Model& bound, const LikelihoodOptions& options,
              std::uint64_t seed) {
  const Problem part = answer.exact ? rows_to_simulate(problem, blocks_of(problem)) : problem;
  const Source source{part, bound, options, blocks_of(part), seed};
  LinkLikelihood likelihood(problem, bound, options);
  likelihood.set_tilt(answer.tilt);
  answer.what_if = other_assumptions(source, answer, likelihood.information(answer.optimum.theta()),
                                     double(problem.responses()) / double(part.responses()));
  const GroupChecks groups = check_groups(problem, bound, options, answer);
  answer.means_agree = groups.means_agree;
  if (answer.covariance.size() > 0 && groups.jackknife.size() > 0)
    answer.widen(groups.jackknife.diagonal().cwiseSqrt());
}

Matrix profile_of(const Calibrated& answer, const Problem& problem, const Model& bound,
                  const LikelihoodOptions& options) {
  const auto tilted = [&] {
    LinkLikelihood likelihood(problem, bound, options);
    likelihood.set_tilt(answer.tilt);
    return likelihood;
  };
  // The distribution of responses without a partner is an approximation, so this is not exactly a likelihood.
  const bool made_up = rows_left_over(problem).responses > 0;
  const Vector errors = answer.covariance.diagonal().cwiseSqrt();
  return profile_margins(tilted, answer.optimum, made_up ? errors : Vector::Zero(errors.size()));
}

Matrix Calibrated::margins(const Matrix& profile) const {
  const Vector errors = normal_quantile * covariance.diagonal().cwiseSqrt();
  Matrix margins = profile.cwiseMax(errors.replicate(1, profile.cols()));
  const Vector doubt = (doubted_covariance() - covariance).diagonal().cwiseMax(0.0);
  for (Index side = 0; side < margins.cols(); ++side) {
    margins.col(side) = (margins.col(side).array().square() + normal_quantile * normal_quantile * doubt.array()).sqrt();
  }
  return margins;
}

}  // namespace unshuffle
