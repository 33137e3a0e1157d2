#include "estimators/unlinked.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/balanced_inverse.hpp"
#include "starts/starts.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

UnlinkedRows::UnlinkedRows(const Problem& problem, const Model& bound)
    : problem_(problem),
      bound_(bound),
      tables_{bound.basis(Side::response, problem.x), problem.y, bound.basis(Side::feature, problem.z)},
      blocks_(blocks_of(problem)),
      weighted_(!equal_weights(problem.response_weights) || !equal_weights(problem.feature_weights)) {}

Links UnlinkedRows::best_among(const std::vector<Index>& responses, const std::vector<Index>& features,
                               const VectorRef& w) const {
  const TwoTables some{tables_.x(responses, Eigen::all), tables_.y(responses, Eigen::all),
                       tables_.z(features, Eigen::all)};
  std::vector<Index> partner;
  if (const AdditiveModel* sum = bound_.additive(); sum != nullptr && some.y.cols() == 1) {
    Vector t = some.y.col(0);
    if (some.x.cols() > 0) t -= sum->part(Side::response, some.x, w).col(0);
    partner = assign_on_line(t, sum->part(Side::feature, some.z, w).col(0));
  } else {
    Matrix cost;
    squared_costs(bound_, some, w, cost);
    partner = assign(cost).column_of_row;
  }
  Links links;
  for (std::size_t i = 0; i < responses.size(); ++i) {
    if (partner[i] < 0) continue;
    links.responses.push_back(responses[i]);
    links.features.push_back(features[std::size_t(partner[i])]);
  }
  return links;
}

Links UnlinkedRows::best(const VectorRef& w) const {
  Links links;
  for (const Block& block : blocks_) append(links, best_among(block.response_rows, block.feature_rows, w));
  return links;
}

LinkedRows UnlinkedRows::linked(const Links& links) const {
  LinkedRows rows;
  if (tables_.x.cols() > 0) rows.x = tables_.x(links.responses, Eigen::all);
  rows.z = tables_.z(links.features, Eigen::all);
  rows.y = tables_.y(links.responses, Eigen::all);
  return rows;
}

Vector UnlinkedRows::weights(const Links& links) const {
  if (!weighted_) return {};
  // A weight on either side is a weight of the link; where both sides have one they multiply.
  const Vector product =
      problem_.response_weights(links.responses).cwiseProduct(problem_.feature_weights(links.features));
  return product / product.mean();
}

void append(Links& links, const Links& more) {
  links.responses.insert(links.responses.end(), more.responses.begin(), more.responses.end());
  links.features.insert(links.features.end(), more.features.begin(), more.features.end());
}

Links order_to_fit(const Input& input) {
  Links links = links_in_order(input.problem);
  if (links.size() * input.problem.outputs() <= input.bound.parameters()) {
    throw BadData(fmt::format("{} rows that could be linked in the order given cannot determine {} parameters",
                              links.size(), input.bound.parameters()));
  }
  return links;
}

CandidateLinks candidates_of(const Problem& problem, const Model& bound, const Links& links) {
  const UnlinkedRows rows(problem, bound);
  CandidateLinks result;
  result.rows = rows.linked(links);
  result.weights = rows.weights(links);
  result.known = static_cast<Index>(problem.known.size());
  if (rows.blocks().size() == 1) return result;
  std::vector<Index> block_of(std::size_t(problem.responses()), 0);
  for (std::size_t k = 0; k < rows.blocks().size(); ++k) {
    for (const Index row : rows.blocks()[k].response_rows) block_of[std::size_t(row)] = Index(k);
  }
  for (const Index row : links.responses) result.blocks.push_back(block_of[std::size_t(row)]);
  return result;
}

Estimate regression_on(const Input& input, const UnlinkedRows& rows, const Links& links, const std::string& start) {
  const Index p = input.bound.parameters();
  if (links.size() * input.problem.outputs() < p) {
    throw BadData(fmt::format("{} linked rows cannot determine {} parameters", links.size(), p));
  }
  const LeastSquares solved =
      best_least_squares(input.problem, input.bound, rows.linked(links), rows.weights(links), input.run.seed);
  Candidate answer;
  answer.start = start;
  answer.parameters = solved.parameters;
  answer.objective = solved.squares;
  answer.converged = true;
  answer.iterations = 1;
  answer.message = fmt::format("least squares on {} linked rows", links.size());
  Estimate estimate;
  estimate.candidates = {answer};
  estimate.evaluations = 1;
  const double freedom = double(links.size() * input.problem.outputs() - p);
  if (freedom > 0) estimate.noise_sd = std::sqrt(solved.squares / freedom);
  const Matrix inverse = balanced_inverse(solved.matrix);
  if (freedom > 0) estimate.covariance = estimate.noise_sd * estimate.noise_sd * inverse;
  estimate.std_error_note.clear();
  return estimate;
}

void forget_std_errors(Estimate& estimate) {
  estimate.covariance.resize(0, 0);
  estimate.std_error_note = Estimate{}.std_error_note;
}

void require_rows_in_order(const Input& input, std::string_view method) {
  if (input.problem.responses() == input.problem.features()) return;
  throw InvalidInput(
      fmt::format("{} takes rows as linked in the order given, so it needs tables of equal length; {} and "
                  "{} rows were given",
                  method, input.problem.responses(), input.problem.features()));
}

void require_linear_model(const Input& input, std::string_view method) {
  if (input.bound.linear_in_parameters()) return;
  throw InvalidInput(fmt::format("{} needs a model that is linear in its coefficients (linear, spline:K); {} is not",
                                 method, input.bound.name()));
}

}  // namespace unshuffle
