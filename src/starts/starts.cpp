#include "starts/starts.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "core/squares.hpp"
#include "objective/batch.hpp"
#include "starts/alignment.hpp"
#include "starts/joint_moments.hpp"
#include "starts/ransac.hpp"
#include "starts/sorted_alternation.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

constexpr int default_starts = 8;

LinkedRows linked_in_order(const Problem& problem, const Model& bound) {
  const Links links = links_in_order(problem);
  return link(problem, bound, links.responses, links.features);
}

LinkedRows paired_at_random(const Problem& problem, const Model& bound, Index count) {
  const Links links = links_at_random(problem, count, Stream::pairing_at_random);
  return link(problem, bound, links.responses, links.features);
}

double spread_of(const Matrix& y) {
  const double spread = std::sqrt(squares_about_mean(y)) / std::sqrt(double(y.size()));
  return spread > 0 ? spread : 1.0;
}

/// Mean and standard deviation of a Jacobian column over the output it belongs to.
struct ColumnSpread {
  double mean = 0;
  double sd = 0;
  double size = 0;  ///< Root mean square.
};
ColumnSpread spread_of_column(const Eigen::Ref<const Vector>& column, Index rows) {
  ColumnSpread widest;
  for (Index begin = 0; begin < column.size(); begin += rows) {
    const auto part = column.segment(begin, rows);
    const double size = std::sqrt(part.squaredNorm() / double(rows));
    if (size <= widest.size) continue;
    const double mean = part.mean();
    widest = {mean, std::sqrt(std::max(0.0, size * size - mean * mean)), size};
  }
  return widest;
}

// Coefficients N(0, 1) in units of 1/(spread of their column), rescaled so that predictions vary like y; constant
// columns (the intercept) absorb the difference of the means.
Start random_start(const Problem& problem, const Model& bound, RandomStream random) {
  const LinkedRows rows = paired_at_random(problem, bound, 2000);
  Vector w = Vector::NullaryExpr(bound.parameters(), [&] { return random.normal(); });
  const Matrix jacobian = linked_jacobian(bound, rows, w);
  std::vector<ColumnSpread> spreads;
  for (Index k = 0; k < w.size(); ++k) {
    spreads.push_back(spread_of_column(jacobian.col(k), rows.size()));
    const ColumnSpread& s = spreads.back();
    const bool varies = s.sd > 1e-9 * s.size;
    if (varies && bound.linear_in_parameters()) w(k) /= s.sd;
    if (!varies) w(k) = 0;
  }
  if (!bound.linear_in_parameters()) return {"random", w, {}, 0};

  const double predicted = spread_of(predict_pairs(bound, rows.x, rows.z, w));
  w *= spread_of(rows.y) / predicted;
  const Matrix rest = residuals(bound, rows, w);
  for (Index k = 0; k < w.size(); ++k) {
    const ColumnSpread& s = spreads[std::size_t(k)];
    if (s.sd > 1e-9 * s.size || s.size == 0) continue;
    w(k) = rest.reshaped().dot(jacobian.col(k)) / jacobian.col(k).squaredNorm();
  }
  return {"random", w, {}, 0};
}

Start least_squares_start(const Problem& problem, const Model& bound, std::uint64_t seed) {
  const LeastSquares best = best_least_squares(problem, bound, linked_in_order(problem, bound), {}, seed);
  return {"least squares", best.parameters, {}, 0};
}

Start ransac_start(const LinkedRows& rows, const Model& bound, std::uint64_t seed, std::uint64_t number) {
  const Consensus found = ransac(bound, rows, RandomStream(seed, Stream::start, number));
  if (!found.significant()) return {"ransac without consensus", found.parameters, {}, 0};
  return {"ransac", found.parameters, found.covariance, found.noise_sd};
}

/// Every group's mean rows, linked; empty when there are fewer groups than parameters to find.
LinkedRows group_means(const Problem& problem, const Model& bound, Vector& rows_per_group) {
  const std::vector<Block> blocks = blocks_of(problem);
  LinkedRows means;
  if (Index(blocks.size()) * problem.outputs() < bound.parameters()) return means;
  const Matrix x = problem.x.cols() > 0 ? bound.basis(Side::response, problem.x) : Matrix();
  const Matrix z = bound.basis(Side::feature, problem.z);
  const auto groups = static_cast<Index>(blocks.size());
  means.x = Matrix::Zero(x.cols() > 0 ? groups : 0, x.cols());
  means.z = Matrix::Zero(groups, z.cols());
  means.y = Matrix::Zero(groups, problem.outputs());
  rows_per_group.resize(groups);
  for (Index g = 0; g < groups; ++g) {
    const Block& block = blocks[std::size_t(g)];
    const double responses = double(block.response_rows.size());
    const double features = double(block.feature_rows.size());
    for (const Index i : block.response_rows) {
      means.y.row(g) += problem.y.row(i) / responses;
      if (x.cols() > 0) means.x.row(g) += x.row(i) / responses;
    }
    for (const Index j : block.feature_rows) means.z.row(g) += z.row(j) / features;
    rows_per_group(g) = std::min(responses, features);
  }
  return means;
}

void add_group_means(const Problem& problem, const Model& bound, std::vector<Start>& starts) {
  if (blocks_of(problem).size() < 2 || !bound.linear_in_parameters()) return;
  Vector weights;
  const LinkedRows means = group_means(problem, bound, weights);
  if (means.size() == 0) return;
  const auto solved = least_squares(bound, means, Vector::Zero(bound.parameters()), weights);
  starts.push_back({"group means", solved.parameters, {}, 0});
}

// The prior alone gives each response a distribution over partners, and y_i is on average f over it: regression on the
// features' means under the prior, as for groups, is consistent if the prior is right (docs/mathematics.md §11.4).
void add_prior_means(const Problem& problem, const Model& bound, std::vector<Start>& starts) {
  if (!problem.has_prior() || !bound.linear_in_parameters()) return;
  const Vector nothing = Vector::Zero(bound.parameters());
  EvaluatorOptions options;
  options.tolerance = 1e-6;
  Evaluator evaluator(problem, bound, options);
  constexpr double all_else = 1e6;  // costs are negligible at so large an ε
  evaluator.set_epsilon(all_else * std::max(evaluator.largest_cost(nothing), std::numeric_limits<double>::min()));
  (void)evaluator.links(nothing);
  LinkedRows means;
  if (problem.x.cols() > 0) means.x = bound.basis(Side::response, problem.x);
  means.y = problem.y;
  const Matrix z = bound.basis(Side::feature, problem.z);
  means.z = Matrix::Zero(problem.responses(), z.cols());
  Vector matched = Vector::Zero(problem.responses());
  for (const Block& block : blocks_of(problem)) {
    for (const Index i : block.response_rows) {
      for (const Index j : block.feature_rows) {
        const double mass = evaluator.plan_entry(i, j);
        means.z.row(i) += mass * z.row(j);
        matched(i) += mass;
      }
      if (matched(i) > 0) means.z.row(i) /= matched(i);
    }
  }
  starts.push_back({"prior means", least_squares(bound, means, nothing, matched).parameters, {}, 0});
}

/// Principal axes of a table's rows, widest first, oriented to positive skewness.
struct Spectrum {
  Eigen::RowVectorXd mean;
  Matrix axes;    // one per column
  Vector spread;  // standard deviation along each
  Vector skewness;
};

Spectrum spectrum_of(const Matrix& rows) {
  Spectrum found;
  found.mean = rows.colwise().mean();
  const Matrix centred = rows.rowwise() - found.mean;
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(centred.transpose() * centred / double(rows.rows()));
  found.axes = solver.eigenvectors().rowwise().reverse();
  found.spread = solver.eigenvalues().reverse().cwiseMax(0).cwiseSqrt();
  found.skewness.resize(found.spread.size());
  for (Index k = 0; k < found.spread.size(); ++k) {
    const Vector along = centred * found.axes.col(k);
    found.skewness(k) = along.array().cube().mean() / std::max(std::pow(found.spread(k), 3), 1e-300);
    if (found.skewness(k) >= 0) continue;
    found.skewness(k) = -found.skewness(k);
    found.axes.col(k) = -found.axes.col(k);
  }
  return found;
}

// With several responses and all links lost, second moments survive. The map of the principal axes of z onto those of y
// is the true one, up to the direction of each axis, if the true one is a rotation and a shift, and a start otherwise.
// Both directions are tried, starting with those that agree with the skewness, to which both tables were oriented.
void add_spectra(const Problem& problem, const Model& bound, std::vector<Start>& starts) {
  constexpr Index most_axes = 3;
  if (problem.outputs() < 2 || problem.x.cols() > 0 || !bound.linear_in_parameters()) return;
  const Spectrum y = spectrum_of(problem.y), z = spectrum_of(problem.z);
  const Index axes = std::min({problem.outputs(), problem.z.cols(), most_axes});
  if (!(z.spread.head(axes).minCoeff() > 0)) return;
  LinkedRows rows = link(problem, bound, {}, {});
  rows.z = bound.basis(Side::feature, problem.z);
  const Matrix centred = problem.z.rowwise() - z.mean;
  struct Way {
    Vector signs;
    double disagreement;
  };
  std::vector<Way> ways;
  for (int mask = 0; mask < 1 << axes; ++mask) {
    Way way{Vector::Ones(axes), 0};
    for (Index k = 0; k < axes; ++k) {
      if ((mask >> k & 1) == 0) continue;
      way.signs(k) = -1;
      way.disagreement += y.skewness(k) * z.skewness(k);
    }
    ways.push_back(std::move(way));
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Way& a, const Way& b) { return a.disagreement < b.disagreement; });
  for (const Way& way : ways) {
    const Vector stretch = way.signs.array() * y.spread.head(axes).array() / z.spread.head(axes).array();
    rows.y =
        (centred * z.axes.leftCols(axes) * stretch.asDiagonal() * y.axes.leftCols(axes).transpose()).rowwise() + y.mean;
    starts.push_back({"spectra", least_squares(bound, rows, Vector::Zero(bound.parameters())).parameters, {}, 0});
  }
}

// Third and fourth moments determine the rotation, without any order of the axes; see joint_moments.cpp.
void add_joint_moments(const Problem& problem, const Model& bound, std::uint64_t seed, std::vector<Start>& starts) {
  constexpr std::size_t most = 4;
  if (problem.x.cols() > 0 || !bound.linear_in_parameters()) return;
  LinkedRows rows = link(problem, bound, {}, {});
  rows.z = bound.basis(Side::feature, problem.z);
  for (const AffineMap& map :
       maps_of_joint_moments(problem.y, problem.z, most, RandomStream(seed, Stream::joint_moments))) {
    rows.y = (problem.z * map.linear).rowwise() + map.offset;
    starts.push_back({"joint moments", least_squares(bound, rows, Vector::Zero(bound.parameters())).parameters, {}, 0});
  }
}

// A single response lies on a line, where matching is sorting. Its best links on a sample of rows, from a few
// alternations, serve the other responses too.
void add_single_responses(const Problem& problem, const Model& bound, std::uint64_t seed, std::vector<Start>& starts) {
  constexpr Index sample_rows = 1000;
  constexpr std::uint64_t pairings = 8;
  if (problem.outputs() < 2 || bound.additive() == nullptr || !bound.linear_in_parameters()) return;
  if (blocks_of(problem).size() > 1 || problem.has_prior()) return;
  for (Index k = 0; k < problem.outputs(); ++k) {
    const std::uint64_t first = static_cast<std::uint64_t>(k) * (pairings + 1);
    RandomStream random(seed, Stream::single_response, first);
    const Problem sample = draw_batch(problem, sample_rows, random);
    Problem alone = sample;
    alone.y = sample.y.col(k);
    if (!alone.y_names.empty()) alone.y_names = {sample.y_names[static_cast<std::size_t>(k)]};
    const std::unique_ptr<Model> bound_alone = bound.bound_to(alone);
    SortedAlternation best;
    for (std::uint64_t trial = 0; trial < pairings; ++trial) {
      const Start from =
          random_start(alone, *bound_alone, RandomStream(seed, Stream::single_response, first + 1 + trial));
      SortedAlternation found = sorted_alternation(alone, *bound_alone, from.parameters);
      if (trial == 0 || found.squares < best.squares) best = std::move(found);
    }
    const LinkedRows rows = link(sample, bound, best.links.responses, best.links.features);
    starts.push_back(
        {"a single response", least_squares(bound, rows, Vector::Zero(bound.parameters())).parameters, {}, 0});
  }
}

// Rows far apart in the features tend to be far apart in the responses: the pairing of a sample that distorts distances
// least links rows without any model.
void add_alignment(const Problem& problem, const Model& bound, std::uint64_t seed, std::vector<Start>& starts) {
  constexpr Index sample_rows = 500;
  if (problem.outputs() < 2 || !bound.linear_in_parameters()) return;
  if (blocks_of(problem).size() > 1 || problem.has_prior()) return;
  RandomStream random(seed, Stream::alignment_sample);
  const Problem sample = draw_batch(problem, sample_rows, random);
  const Links links = aligned(response_columns(sample), sample.z, alignment_epsilon).links;
  if (links.size() * problem.outputs() < bound.parameters()) return;
  const LinkedRows rows = link(sample, bound, links.responses, links.features);
  starts.push_back({"alignment", least_squares(bound, rows, Vector::Zero(bound.parameters())).parameters, {}, 0});
}

Start user_start(const Model& bound, const Vector& parameters) {
  if (parameters.size() != bound.parameters()) {
    throw InvalidInput(
        fmt::format("start has {} values; {} parameters were expected", parameters.size(), bound.parameters()));
  }
  if (!parameters.allFinite()) throw InvalidInput("start must hold finite numbers only");
  return {"user", parameters, {}, 0};
}

std::vector<Start> automatic_starts(const Problem& problem, const Model& bound, int count, std::uint64_t seed) {
  std::vector<Start> starts;
  if (problem.order_is_a_hint()) starts.push_back(ransac_start(linked_in_order(problem, bound), bound, seed, 0));
  const bool trusted = !starts.empty() && starts.front().covariance.size() > 0;
  add_prior_means(problem, bound, starts);
  if (!trusted) {
    add_group_means(problem, bound, starts);
    add_joint_moments(problem, bound, seed, starts);
    add_spectra(problem, bound, starts);
    add_single_responses(problem, bound, seed, starts);
    add_alignment(problem, bound, seed, starts);
    if (problem.responses() == problem.features()) starts.push_back(least_squares_start(problem, bound, seed));
  }
  const int wanted = count > 0 ? count : trusted ? 1 : default_starts;
  for (auto k = std::uint64_t(starts.size()); int(starts.size()) < wanted; ++k) {
    starts.push_back(random_start(problem, bound, RandomStream(seed, Stream::start, k)));
  }
  if (count > 0) starts.resize(static_cast<std::size_t>(count));
  return starts;
}

}  // namespace

std::vector<Start> make_starts(const Problem& problem, const Model& bound, const StartOptions& options,
                               std::uint64_t seed) {
  const auto count = std::uint64_t(std::max(1, options.starts > 0 ? options.starts : default_starts));
  std::vector<Start> starts;
  switch (options.start.kind) {
    case StartKind::automatic:
      return automatic_starts(problem, bound, options.starts, seed);
    case StartKind::least_squares:
      if (problem.responses() != problem.features()) {
        throw InvalidInput(fmt::format("start = least squares needs tables of equal length; {} and {} rows were given",
                                       problem.responses(), problem.features()));
      }
      return {least_squares_start(problem, bound, seed)};
    case StartKind::ransac: {
      const LinkedRows rows = linked_in_order(problem, bound);
      for (std::uint64_t k = 0; k < (options.starts > 0 ? count : 1); ++k) {
        starts.push_back(ransac_start(rows, bound, seed, k));
      }
      return starts;
    }
    case StartKind::group_means:
      add_group_means(problem, bound, starts);
      if (starts.empty()) {
        throw InvalidInput(
            "start = group means needs groups, at least as many as parameters, and a model linear in them");
      }
      return starts;
    case StartKind::random:
      for (std::uint64_t k = 0; k < count; ++k) {
        starts.push_back(random_start(problem, bound, RandomStream(seed, Stream::start, k)));
      }
      return starts;
    case StartKind::user:
      return {user_start(bound, options.start.parameters)};
  }
  return starts;
}

LeastSquares best_least_squares(const Problem& problem, const Model& bound, const LinkedRows& rows,
                                const Vector& row_weights, std::uint64_t seed) {
  LeastSquares best = least_squares(bound, rows, Vector::Zero(bound.parameters()), row_weights);
  if (bound.linear_in_parameters()) return best;
  for (std::uint64_t trial = 0; trial < 10; ++trial) {
    const Start from = random_start(problem, bound, RandomStream(seed, Stream::least_squares, trial));
    LeastSquares other = least_squares(bound, rows, from.parameters, row_weights);
    if (other.squares < best.squares) best = std::move(other);
  }
  return best;
}

Vector natural_steps(const Problem& problem, const Model& bound, const VectorRef& w) {
  const LinkedRows rows = paired_at_random(problem, bound, 500);
  const Matrix jacobian = linked_jacobian(bound, rows, w);
  const double spread = spread_of(rows.y);
  Vector steps(w.size());
  for (Index k = 0; k < w.size(); ++k) {
    const double size = spread_of_column(jacobian.col(k), rows.size()).size;
    steps(k) = size > 0 && std::isfinite(size) ? spread / size : 1.0;
  }
  return steps;
}

}  // namespace unshuffle
