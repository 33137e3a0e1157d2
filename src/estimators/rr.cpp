// Robust regression (Slawski & Ben-David 2019; Slawski, Ben-David & Li 2019): rows are linked in the order given except
// for a minority. First stage: Huber's loss, its δ a multiple of the noise estimated from the smaller residuals. Second
// stage: rows whose residual noise cannot explain are rematched among themselves, and all links are refitted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimators/huber.hpp"
#include "estimators/unlinked.hpp"

namespace unshuffle {

namespace {

Vector sizes(const Matrix& residual) { return residual.rowwise().norm(); }

double huber_loss(const Vector& size, double threshold, const Vector& row_weights) {
  const Vector loss =
      size.unaryExpr([&](double r) { return r <= threshold ? r * r : 2 * threshold * r - threshold * threshold; });
  return row_weights.size() > 0 ? row_weights.dot(loss) : loss.sum();
}

/// Standard deviation of one output of Gaussian residuals whose sizes have this first quartile: the median would
/// already be an outlier's when half of the links are wrong. Exact for one output, within 2 % for more (the quartile of
/// χ with o degrees of freedom, Wilson & Hilferty 1931).
double noise_from_quartile(Vector size, Index outputs) {
  const auto quarter = size.begin() + size.size() / 4;
  std::nth_element(size.begin(), quarter, size.end());
  const double a = 2 / (9 * double(outputs));
  const double expected = outputs == 1
                              ? 0.31863936396437515
                              : std::sqrt(double(outputs) * std::pow(1 - a - 0.6744897501960817 * std::sqrt(a), 3));
  return *quarter / expected;
}

struct FirstStage {
  HuberFit fit;
  double noise_sd = 0;
};

/// δ follows the noise until both settle, then the loss at that δ is minimised to the end.
FirstStage robust_fit(const Rr& options, const Input& input, const LinkedRows& rows, const Vector& weights) {
  constexpr int scale_rounds = 50;
  FirstStage stage;
  stage.fit.parameters = least_squares(input.bound, rows, Vector::Zero(input.bound.parameters()), weights).parameters;
  const double tiny = 1e-10 * rows.y.norm() / std::sqrt(double(rows.size()));
  for (int round = 0; round < scale_rounds; ++round) {
    const Vector size = sizes(residuals(input.bound, rows, stage.fit.parameters));
    const double noise_sd = std::max(tiny, noise_from_quartile(size, rows.y.cols()));
    const bool settled = std::abs(noise_sd - stage.noise_sd) <= 1e-3 * noise_sd;
    stage.noise_sd = noise_sd;
    const double threshold = options.threshold * noise_sd;
    stage.fit = huber_regression(input.bound, rows, threshold, stage.fit.parameters, weights);
    if (settled) break;
  }
  return stage;
}

/// Links whose residual exceeds the expected maximum of n Gaussian ones are dropped and their rows rematched.
Links rematched(const Input& input, const UnlinkedRows& rows, const Links& links, const FirstStage& stage) {
  const double n = double(links.size());
  const double limit = stage.noise_sd * (std::sqrt(2 * std::log(n)) + std::sqrt(double(input.problem.outputs()) - 1));
  const Vector size = sizes(residuals(input.bound, rows.linked(links), stage.fit.parameters));
  std::vector<char> response_off(std::size_t(input.problem.responses()), 0);
  std::vector<char> feature_off(std::size_t(input.problem.features()), 0);
  Links result;
  for (Index k = 0; k < links.size(); ++k) {
    const Index i = links.responses[std::size_t(k)];
    const Index j = links.features[std::size_t(k)];
    if (size(k) > limit) {
      response_off[std::size_t(i)] = feature_off[std::size_t(j)] = 1;
    } else {
      append(result, {{i}, {j}});
    }
  }
  for (const Block& block : rows.blocks()) {
    std::vector<Index> responses;
    std::vector<Index> features;
    for (const Index i : block.response_rows) {
      if (response_off[std::size_t(i)] != 0) responses.push_back(i);
    }
    for (const Index j : block.feature_rows) {
      if (feature_off[std::size_t(j)] != 0) features.push_back(j);
    }
    if (!responses.empty() && !features.empty()) {
      append(result, rows.best_among(responses, features, stage.fit.parameters));
    }
  }
  return result;
}

}  // namespace

HuberFit huber_regression(const Model& bound, const LinkedRows& rows, double threshold, const VectorRef& start,
                          const Vector& row_weights, int max_iterations) {
  HuberFit result{start, 0, 0, false};
  result.loss = huber_loss(sizes(residuals(bound, rows, start)), threshold, row_weights);
  LinkedRows shifted = rows;
  while (result.iterations < max_iterations && !result.converged) {
    const Matrix residual = residuals(bound, rows, result.parameters);
    const Vector kept = sizes(residual).unaryExpr([&](double r) { return r <= threshold ? 0.0 : 1 - threshold / r; });
    shifted.y = rows.y - kept.asDiagonal() * residual;
    const Vector next = least_squares(bound, shifted, result.parameters, row_weights).parameters;
    const double loss = huber_loss(sizes(residuals(bound, rows, next)), threshold, row_weights);
    ++result.iterations;
    result.converged = result.loss - loss <= 1e-14 * result.loss;
    if (loss <= result.loss) {
      result.parameters = next;
      result.loss = loss;
    }
  }
  return result;
}

Estimate estimate(const Rr& options, const Input& input) {
  require_rows_in_order(input, "rr");
  require_linear_model(input, "rr");
  const UnlinkedRows rows(input.problem, input.bound);
  const Links in_order = links_in_order(input.problem);
  const FirstStage stage = robust_fit(options, input, rows.linked(in_order), rows.weights(in_order));
  const Links links = rematched(input, rows, in_order, stage);
  Estimate result = regression_on(input, rows, links, "rows in order");
  Index moved = 0;
  for (std::size_t k = 0; k < links.responses.size(); ++k) moved += links.responses[k] != links.features[k] ? 1 : 0;
  Candidate& answer = result.candidates.front();
  answer.converged = stage.fit.converged;
  answer.iterations = stage.fit.iterations;
  answer.message = fmt::format("robust regression {}; {} of {} rows rematched",
                               stage.fit.converged ? "settled" : "did not settle", moved, links.size());
  result.noise_sd = stage.noise_sd;
  forget_std_errors(result);
  return result;
}

}  // namespace unshuffle
