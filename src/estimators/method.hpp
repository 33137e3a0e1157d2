// What every method is given and what it gives back. A new method is one function and one line in registry.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unshuffle/estimators/methods.hpp"
#include "unshuffle/fitted/fit.hpp"

namespace unshuffle {

struct MethodInput {
  const Problem& problem;  ///< completed().
  const Model& bound;      ///< Bound to it.
  const FitOptions& options;
};

struct Estimate {
  std::vector<Candidate> candidates;  ///< At least one, best first: the first is the answer.
  std::string objective_name = "squared residuals";
  int evaluations = 0;
  bool stopped = false;  ///< Progress said so.
  std::vector<TracePoint> trace;
  double noise_sd = 0;  ///< 0: the method does not know.
  Matrix covariance{};  ///< Of the parameters; empty: the method has none, and the note says why.
  Matrix margins{};     ///< As in Fit.
  std::string std_error_note = "not estimated: ordinary ones would ignore that the links are unknown";

  Identifiability identifiable{};
  std::string choice{};            ///< As in Fit.
  std::optional<Method> chosen{};  ///< As in Fit; empty: what was asked for.
  Vector link_probabilities{};     ///< As in Fit.

  bool errors_are_too_small = false;  ///< The covariance compares estimates but is not to be shown.
  bool contradicted = false;  ///< mixture: regression on all rows says otherwise, so that its likelihood does not hold.

  bool solves_transport = false;  ///< Its objective is the transport problem's, so the fit converged only if that did.
  double epsilon = 0;             ///< In the unit of the cost; 0: the options' value at the answer.
  double largest_cost = 0;        ///< What ε was relative to; 0: the largest cost at the answer.
};

using Estimator = Estimate (*)(const MethodInput& input);

struct MethodEntry {
  MethodInfo info;
  Estimator estimate;
};

/// The entry of a method; every enumerator has one.
[[nodiscard]] const MethodEntry& entry_of(Method method);

Estimate estimate_robot(const MethodInput& input);
Estimate estimate_robot_robust(const MethodInput& input);
Estimate estimate_robot_unrolled(const MethodInput& input);
Estimate estimate_ls(const MethodInput& input);
Estimate estimate_oracle(const MethodInput& input);
Estimate estimate_am(const MethodInput& input);
Estimate estimate_em(const MethodInput& input);
Estimate estimate_hard_em(const MethodInput& input);
Estimate estimate_rr(const MethodInput& input);
Estimate estimate_rs(const MethodInput& input);
Estimate estimate_sliced_gw(const MethodInput& input);
Estimate estimate_sinkhorn_gw(const MethodInput& input);
Estimate estimate_one_step(const MethodInput& input);
Estimate estimate_auto(const MethodInput& input);
Estimate estimate_mixture(const MethodInput& input);
Estimate estimate_adjusted(const MethodInput& input);
Estimate estimate_entropic(const MethodInput& input);

}  // namespace unshuffle
