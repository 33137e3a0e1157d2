// Input and output of every estimator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint.hpp"
#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/estimators/result.hpp"
#include "unshuffle/families/fitted_law.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

struct Input {
  const Problem& problem;  ///< completed().
  const Model& bound;      ///< Bound to it.
  const Run& run;
};

struct Estimate {
  std::vector<Candidate> candidates;  ///< At least one, best first: the first is the answer.
  std::string objective_name = "squared residuals";
  int evaluations = 0;
  bool stopped = false;  ///< On request of progress.
  std::vector<TracePoint> trace;
  double noise_sd = 0;  ///< 0: unknown to the method.
  Matrix covariance{};  ///< Of the parameters; empty: the method has none, and the note says why.
  Matrix margins{};     ///< As in Result.
  std::string std_error_note = "not estimated: ordinary ones would ignore that the links are unknown";
  Identifiability identifiable{};
  std::string choice{};               ///< As in Result.
  std::optional<Estimator> chosen{};  ///< What `auto` chose; empty: the requested one.
  Vector link_probabilities{};        ///< As in Result.
  bool errors_are_too_small = false;  ///< The covariance serves to compare estimates but must not be shown.
  bool contradicted = false;          ///< mixture: regression on all rows disagrees, so its likelihood does not hold.
  bool order_is_chance = false;       ///< Rows in order agree no better than any others.
  double gain = 0;                    ///< mixture: nats over the same rows with no link right.
  bool rests_on_ties = false;         ///< mixture: the links it takes for right have one response in common.
  bool solves_transport = false;  ///< Its objective is the transport problem's, so the fit converged only if that did.
  double epsilon = 0;             ///< In the unit of the cost; 0: the options' value at the answer.
  FittedLaw law{};                ///< Of the responses.
  double largest_cost = 0;        ///< What ε was relative to; 0: the largest cost at the answer.
};

Estimate estimate(const Auto& options, const Input& input);
Estimate estimate(const Mixture& options, const Input& input);
Estimate estimate(const Adjusted& options, const Input& input);
Estimate estimate(const Entropic& options, const Input& input);
Estimate estimate(const Registration& options, const Input& input);
Estimate estimate(const Robot& options, const Input& input);
Estimate estimate(const RobotRobust& options, const Input& input);
Estimate estimate(const RobotUnrolled& options, const Input& input);
Estimate estimate(const Ls& options, const Input& input);
Estimate estimate(const Oracle& options, const Input& input);
Estimate estimate(const Am& options, const Input& input);
Estimate estimate(const Em& options, const Input& input);
Estimate estimate(const HardEm& options, const Input& input);
Estimate estimate(const Rr& options, const Input& input);
Estimate estimate(const Rs& options, const Input& input);
Estimate estimate(const OneStep& options, const Input& input);
Estimate estimate(const SlicedGw& options, const Input& input);
Estimate estimate(const SinkhornGw& options, const Input& input);

}  // namespace unshuffle
