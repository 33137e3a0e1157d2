#include "methods/each_start.hpp"

#include <cmath>
#include <utility>

namespace unshuffle {

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
