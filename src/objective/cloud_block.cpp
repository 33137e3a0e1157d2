#include "objective/cloud_block.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle {

CloudBlock::CloudBlock(BlockRows responses, BlockRows features, const EvaluatorOptions& options, Vector log_absence)
    : responses_(std::move(responses)),
      features_(std::move(features)),
      policies_(policies_of(options, responses_, features_)),
      transport_({.policies = policies_,
                  .response_cost =
                      std::holds_alternative<transport::Sampled>(policies_.rows) ? std::move(log_absence) : Vector(),
                  .tolerance = options.tolerance,
                  .accuracy = options.accuracy}) {}

BlockValue CloudBlock::solve(Matrix t, Matrix s, double epsilon, Objective objective) {
  t_ = std::move(t);
  s_ = std::move(s);
  epsilon_ = epsilon;
  const transport::CloudReport report =
      transport_.solve({t_, responses_.all_weights()}, {s_, features_.all_weights()}, epsilon);
  BlockValue value;
  value.transport_cost = report.transport_cost;
  value.objective = objective == Objective::transport ? report.transport_cost
                                                      : report.value + paper_constant(responses_, features_, epsilon);
  value.marginal_error = report.marginal_error;
  value.compression_error = compression_error_ = report.compression_error;
  value.iterations = report.iterations;
  value.converged = report.converged;
  value.message = report.message;
  return value;
}

void CloudBlock::link(SoftLinks& links) {
  u_ = transport_.potential(Side::response);
  v_ = transport_.potential(Side::feature);
  links.measured_error = std::max(links.measured_error, compression_error_);
  set_mass(responses_, policies_.rows, transport_.log_ratio(Side::response).array().exp(), links.response_mass);
  set_mass(features_, policies_.columns, transport_.log_ratio(Side::feature).array().exp(), links.feature_mass);
}

double CloudBlock::plan_entry(Index i, Index j) const {
  return responses_.weight(i) * features_.weight(j) * std::exp(u_[i] + v_[j] - cost_entry(i, j) / epsilon_);
}

double CloudBlock::largest_cost(const Matrix& t, const Matrix& s) const {
  return transport::largest_squared_distance(transport::PointCloud(t, responses_.all_weights()),
                                             transport::PointCloud(s, features_.all_weights()));
}

std::vector<PlanEntry> CloudBlock::strongest_links(Index most) const {
  std::vector<PlanEntry> links;
  for (const auto& [i, j, mass] : transport_.strongest(most))
    links.push_back({responses_.rows[static_cast<std::size_t>(i)], features_.rows[static_cast<std::size_t>(j)], mass});
  return links;
}

}  // namespace unshuffle
