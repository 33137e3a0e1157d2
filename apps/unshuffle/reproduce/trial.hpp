// One simulated sample, one method, its error: what most experiments repeat.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "reproduce/experiment.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace unshuffle::app {

/// Training and linked test data.
struct Sample {
  Problem train;
  Problem test;
  std::vector<KnownPair> truth;       ///< The links of `train`.
  std::optional<Vector> consensus{};  ///< The result of RS, if already known.
};
[[nodiscard]] Sample sample_of(const SimulateOptions& options);

/// Σ(ŷ - y)² / Σ(y - ȳ)² on linked rows.
[[nodiscard]] double relative_error(const Model& bound, const Vector& w, const Problem& linked);

/// Transport cost of responses to features, whatever their links, over Σ(y - ȳ)².
[[nodiscard]] double transport_error(const Problem& unlinked, const Model& model, const Vector& w);

/// What a trial passes to every method that reads it; one thread each, as trials run in parallel.
struct TrialOptions {
  std::vector<std::pair<std::string, OptionValue>> options{};
  bool row_hint = false;
  std::uint64_t seed = 0;
};

/// A method by its name in the experiments, on a sample: the options implied by the name are added to `trial`.
///   rs + robot     ROBOT from the consensus of RS
///   robot-paper    the same with the paper's step size, batches and number of steps
/// am, em and hard-em start from RS too where rows are hinted, as in the paper. `oracle` gets the truth.
[[nodiscard]] Result fit_named(const std::string& method, const Sample& sample, const Model& model, TrialOptions trial);

/// relative_error, as given, and seconds of a fit.
[[nodiscard]] Measurements outcome_of(Measurement place, const Result& made, double error);

/// The fit of a method; nothing for one that cannot run on the sample.
[[nodiscard]] std::optional<Result> fit_where_possible(const std::string& method, const Sample& sample,
                                                       const Model& model, const TrialOptions& trial);

/// outcome_of a method on the sample's test rows; nothing for one that cannot run.
[[nodiscard]] Measurements try_method(const Measurement& place, const Sample& sample, const Model& model,
                                      const TrialOptions& trial);

}  // namespace unshuffle::app
