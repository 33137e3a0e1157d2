#include "methods/each_start.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace unshuffle {

// Text that goes in and out of a checkpoint is CBOR, which keeps every double as it is.
std::optional<std::string> packed(const Descended& result) {
  if (result.stopped) return std::nullopt;
  const Candidate& candidate = result.candidate;
  nlohmann::json trace = nlohmann::json::array();
  for (const TracePoint& point : result.trace)
    trace.push_back({point.start, point.iteration, point.epsilon, point.objective, point.gradient_norm,
                     point.marginal_error, point.inner_iterations});
  const nlohmann::json all{candidate.start,
                           std::vector<double>(candidate.parameters.begin(), candidate.parameters.end()),
                           candidate.objective,
                           candidate.converged,
                           candidate.iterations,
                           candidate.message,
                           trace,
                           result.evaluations,
                           result.on_boundary,
                           result.noise_sd};
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(all);
  return std::string(bytes.begin(), bytes.end());
}

Descended unpacked(const std::string& text) {
  const nlohmann::json all = nlohmann::json::from_cbor(text);
  Descended result;
  Candidate& candidate = result.candidate;
  candidate.start = all.at(0);
  const auto parameters = all.at(1).get<std::vector<double>>();
  candidate.parameters = Eigen::Map<const Vector>(parameters.data(), static_cast<Index>(parameters.size()));
  candidate.objective = all.at(2);
  candidate.converged = all.at(3);
  candidate.iterations = all.at(4);
  candidate.message = all.at(5);
  for (const nlohmann::json& point : all.at(6))
    result.trace.push_back({point.at(0), point.at(1), point.at(2), point.at(3), point.at(4), point.at(5), point.at(6)});
  result.evaluations = all.at(7);
  result.on_boundary = all.at(8);
  result.noise_sd = all.at(9);
  return result;
}

Estimate best_of(std::vector<Descended> results, const std::vector<Start>& starts) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (results[k].candidate.parameters.size() > 0) order.push_back(k);
  }
  const auto key = [&](std::size_t k) {
    const double objective = results[k].candidate.objective;
    return std::pair(starts[k].covariance.size() == 0, std::isnan(objective) ? HUGE_VAL : objective);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });

  Estimate estimate;
  estimate.noise_sd = results[order.front()].noise_sd;
  for (Descended& result : results) {
    estimate.evaluations += result.evaluations;
    estimate.trace.insert(estimate.trace.end(), result.trace.begin(), result.trace.end());
    estimate.stopped = estimate.stopped || result.stopped || result.evaluations == 0;
  }
  for (const std::size_t k : order) estimate.candidates.push_back(std::move(results[k].candidate));
  return estimate;
}

}  // namespace unshuffle
