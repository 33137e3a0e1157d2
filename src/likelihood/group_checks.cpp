#include "likelihood/group_checks.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/in_parallel.hpp"
#include "core/special.hpp"
#include "likelihood/calibration.hpp"
#include "objective/batch.hpp"

namespace unshuffle {

// The simulated covariance assumes that the model holds in every group. The jackknife does not: noise that differs
// between groups, curvature in one group or missing partners all show in how far the answer moves when groups are left
// out, (G-1)/G Σ (w_(g) - w)(w_(g) - w)ᵀ over G parts (docs/mathematics.md §9.3).
//
// Group means are a second check. Whatever the noise law, n_g (ȳ_g - f̄_g)² / σ² sums to χ² with G - 1 degrees of
// freedom if the answer is right; an answer that follows the shapes within groups may contradict it (§10.5).
namespace {

constexpr std::size_t most_parts = 20;
constexpr std::size_t fewest_parts = 3;
constexpr double largest_part = 0.5;  // of the responses; without it, the rest would be a different problem

struct Rows {
  std::vector<Index> responses;
  std::vector<Index> features;

  void add(const Block& block) {
    responses.insert(responses.end(), block.response_rows.begin(), block.response_rows.end());
    features.insert(features.end(), block.feature_rows.begin(), block.feature_rows.end());
  }
};

/// All rows but those of every `parts`-th block, beginning with block `out`.
Rows without_part(const std::vector<Block>& blocks, std::size_t out, std::size_t parts) {
  Rows left;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    if (k % parts != out) left.add(blocks[k]);
  }
  return left;
}

Matrix jackknife(const Problem& problem, const Model& bound, const LikelihoodOptions& options, const Calibrated& answer,
                 const std::vector<Block>& blocks) {
  const std::size_t parts = std::min(most_parts, blocks.size());
  if (parts < fewest_parts) return {};
  for (std::size_t k = 0; k < parts; ++k) {
    const auto left = double(without_part(blocks, k, parts).responses.size());
    if (left < (1 - largest_part) * double(problem.responses())) return {};
  }
  const Vector& w = answer.optimum.parameters;
  std::vector<Vector> moved(parts);
  in_parallel(parts, [&](std::size_t k) {
    const Rows left = without_part(blocks, k, parts);
    const Problem rest = some_rows(problem, left.responses, left.features);
    LinkLikelihood likelihood(rest, bound, options);
    likelihood.set_tilt(answer.tilt * double(left.responses.size()) / double(problem.responses()));
    moved[k] = likelihood.most_likely_near(answer.optimum, 30).parameters - w;
  });
  Matrix covariance = Matrix::Zero(w.size(), w.size());
  for (const Vector& change : moved) {
    if (change.allFinite()) covariance += change * change.transpose();
  }
  return covariance * double(parts - 1) / double(parts);
}

/// To first order: without a part of the rows its gradient is missing, which was balanced by that of the others.
Matrix one_step_jackknife(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                          const Calibrated& answer, const std::vector<Block>& blocks) {
  const Vector theta = answer.optimum.theta();
  const Index p = answer.optimum.parameters.size();
  const Eigen::LLT<Matrix> factor(LinkLikelihood(problem, bound, options).information(theta));
  if (factor.info() != Eigen::Success) return {};
  const double rest = double(most_parts - 1) / double(most_parts);
  Matrix covariance = Matrix::Zero(p, p);
  for (std::size_t k = 0; k < most_parts; ++k) {
    Rows part;
    for (std::size_t b = k; b < blocks.size(); b += most_parts) part.add(blocks[b]);
    const Problem rows = some_rows(problem, part.responses, part.features);
    const Vector gradient = LinkLikelihood(rows, bound, options).at(theta, false).gradient;
    const Vector change = factor.solve(gradient).head(p) / rest;
    covariance += change * change.transpose();
  }
  return covariance * rest;
}

double agreement_of_means(const Problem& problem, const Model& bound, const Optimum& at,
                          const std::vector<Block>& blocks) {
  const AdditiveModel& model = *bound.additive();
  const auto predicted = [&](Side side, const Matrix& rows) -> Vector {
    if (rows.cols() == 0) return Vector::Zero(rows.rows());
    return model.part(side, bound.basis(side, rows), at.parameters).col(0);
  };
  const Vector of_responses = problem.y.col(0) - predicted(Side::response, problem.x);
  const Vector of_features = predicted(Side::feature, problem.z);
  double sum = 0;
  int groups = 0;
  for (const Block& block : blocks) {
    const auto rows = double(block.response_rows.size());
    if (rows < 2 || block.response_rows.size() != block.feature_rows.size()) continue;
    const double apart = of_responses(block.response_rows).mean() - of_features(block.feature_rows).mean();
    sum += rows * apart * apart / (at.epsilon / 2);
    ++groups;
  }
  // With many groups some differ in their noise, which the jackknife covers.
  return groups >= 2 && groups <= int(most_parts) ? chi_squared_tail(sum, groups - 1) : 1;
}

}  // namespace

GroupChecks check_groups(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                         const Calibrated& answer) {
  const std::vector<Block> blocks = blocks_of(problem);
  if (problem.response_groups.empty() || blocks.size() < 2) return {};
  const bool many = answer.exact && problem.responses() > many_rows;
  return {many ? one_step_jackknife(problem, bound, options, answer, blocks)
               : jackknife(problem, bound, options, answer, blocks),
          agreement_of_means(problem, bound, answer.optimum, blocks)};
}

}  // namespace unshuffle
