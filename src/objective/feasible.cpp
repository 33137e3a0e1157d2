#include "unshuffle/objective/feasible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "objective/backend.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

double free_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kilobytes = 0;
  std::string unit;
  while (file >> key >> kilobytes && std::getline(file, unit)) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return INFINITY;
}

double dense_bytes(const Problem& problem) {
  // Cost, plan and the workspace of a solve with its gradient: about six matrices of doubles, two more with a prior.
  return (problem.has_prior() ? 8.0 : 6.0) * 8.0 * possible_pairs(problem);
}

void require_estimable(const Problem& problem, const Model& bound) {
  require_enough_rows(problem, bound.parameters());
  require_scales(problem);
  require_varying_responses(problem);
  const auto names = bound.parameter_names();
  if (std::any_of(names.begin(), names.end(), is_intercept)) require_varying_features(problem);
}

void require_finite_costs(const Evaluator& evaluator, const VectorRef& w) {
  if (std::isfinite(evaluator.largest_cost(w))) return;
  throw BadData(
      "with these coefficients a prediction is so far from a response that the squared difference is beyond the "
      "largest "
      "double; the fit has to be of tables in the same units");
}

void require_memory(double bytes, const std::string& what, const std::string& advice) {
  const double available = free_memory_bytes();
  if (bytes <= available) return;
  throw SystemFailure(fmt::format("{} need about {:.3g} GB of memory and {:.3g} GB are free{}", what, bytes / 1e9,
                                  available / 1e9, advice));
}

}  // namespace unshuffle
