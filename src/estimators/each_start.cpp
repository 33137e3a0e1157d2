#include "estimators/each_start.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "core/read_json.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

std::optional<std::string> packed(const Descended& result) {
  if (result.stopped) return std::nullopt;
  const Candidate& candidate = result.candidate;
  Matrix trace(7, static_cast<Index>(result.trace.size()));
  for (std::size_t k = 0; k < result.trace.size(); ++k) {
    const TracePoint& point = result.trace[k];
    trace.col(static_cast<Index>(k)) << point.start, point.iteration, point.epsilon, point.objective,
        point.gradient_norm, point.marginal_error, point.inner_iterations;
  }
  return nlohmann::json{candidate.start,
                        candidate.message,
                        candidate.converged,
                        candidate.iterations,
                        result.evaluations,
                        result.on_boundary,
                        to_hex(candidate.parameters),
                        to_hex(Eigen::Vector2d(candidate.objective, result.noise_sd)),
                        to_hex(trace.reshaped())}
      .dump();
}

namespace {

int whole(double number) {
  if (!(std::abs(number) <= std::numeric_limits<int>::max()) || number != std::trunc(number))
    throw BadData("a whole number was expected");
  return static_cast<int>(number);
}

}  // namespace

Descended unpacked(const std::string& text) {
  const nlohmann::json all = read_json(text, "checkpoint");
  Descended result;
  Candidate& candidate = result.candidate;
  candidate.start = all.at(0);
  candidate.message = all.at(1);
  candidate.converged = all.at(2);
  candidate.iterations = whole(all.at(3));
  result.evaluations = whole(all.at(4));
  result.on_boundary = all.at(5);
  candidate.parameters = from_hex(all.at(6));
  const Vector numbers = from_hex(all.at(7));
  if (numbers.size() != 2) throw BadData("two numbers were expected");
  candidate.objective = numbers[0];
  result.noise_sd = numbers[1];
  const Vector trace = from_hex(all.at(8));
  for (Index at = 0; at + 7 <= trace.size(); at += 7)
    result.trace.push_back({whole(trace[at]), whole(trace[at + 1]), trace[at + 2], trace[at + 3], trace[at + 4],
                            trace[at + 5], whole(trace[at + 6])});
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
