// The result of a fit, as data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class Status { converged, inner_not_converged, outer_not_converged, stopped };
inline constexpr std::array status_words{
    Word<Status>{"converged", Status::converged}, Word<Status>{"inner not converged", Status::inner_not_converged},
    Word<Status>{"outer not converged", Status::outer_not_converged}, Word<Status>{"stopped", Status::stopped}};
constexpr std::span<const Word<Status>> words_of(Status) { return status_words; }

/// One line of the trace: an outer iteration of a start.
struct TracePoint {
  int start;
  int iteration;
  double epsilon;
  double objective;
  double gradient_norm;
  double marginal_error;
  int inner_iterations;
};

/// The outcome of one start.
struct Candidate {
  std::string start;  ///< Its kind: "ransac", "least squares", ...
  Vector parameters;
  double objective = 0;
  bool converged = false;
  int iterations = 0;
  std::string message;
};

/// What the estimator minimises, as a sum over rows.
struct Minimised {
  double value = 0;
  std::string name;                       ///< "transport", "entropic", "squared residuals", ...
  Objective kind = Objective::transport;  ///< Of the plan at the answer.
};

/// The plan at the answer.
struct PlanFacts {
  Backend backend = Backend::dense;
  double transport_cost = 0;  ///< n·<C, Γ>.
  double epsilon = 0;         ///< In the unit of the cost.
  double epsilon_relative = 0;
  double marginal_error = 0;
  double compression_error = 0;  ///< As measured on the final plan, see SoftLinks::measured_error.
  double matched_share = 0;
};

/// The course of the fit.
struct Course {
  int iterations = 0;   ///< Outer iterations of the start that won.
  int evaluations = 0;  ///< Hypergradients over all starts.
  double seconds = 0;
  double peak_memory_mb = 0;
  std::uint64_t seed = 0;
  int processes = 1;                  ///< That shared the work.
  int passes = 0;                     ///< Over tables in pieces; 0: the tables were in memory.
  double bytes_per_evaluation = 0;    ///< Between processes, through the one that leads.
  std::vector<Candidate> candidates;  ///< Every start, best first.
  std::vector<TracePoint> trace;
};

/// How many rows either table has.
struct TableSizes {
  Index responses = 0;
  Index features = 0;
};

struct Result {
  Status status = Status::converged;
  std::string message;             ///< Inner and outer convergence in words.
  std::vector<std::string> names;  ///< Of the parameters, in order.
  Vector parameters;
  Matrix covariance;  ///< Of the parameters; empty when unavailable or misleading.
  Matrix margins;     ///< Extent of 95 % intervals below and above the parameters; empty: from the standard errors.
  std::string std_error_note;  ///< Where standard errors come from, or why there are none.
  double noise_sd = 0;
  Vector link_probabilities;  ///< That response i belongs to feature row i; NaN: it has none. May be empty.
  Identifiability identifiable;
  std::string choice;  ///< What `auto` chose and why; empty for estimators that were named.
  Minimised objective;
  PlanFacts plan;
  TableSizes rows;
  Course course;

  /// Empty without a covariance.
  [[nodiscard]] Vector std_errors() const;
  /// Both ends of the interval of every parameter that holds the truth with this probability, a row each; NaN where
  /// there is none. Margins from profiles are for 95 % and are scaled for other levels.
  [[nodiscard]] Matrix intervals(double level = 0.95) const;
};

/// Competing solutions: those of the verdict or, without one, distinct optima found by other starts; best first.
[[nodiscard]] std::vector<Alternative> alternatives_of(const Result& result);

}  // namespace unshuffle
