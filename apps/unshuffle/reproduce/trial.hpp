// One simulated sample, one method, its error: what most experiments repeat.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "reproduce/experiment.hpp"
#include "unshuffle/fitted/fit.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace unshuffle::app {

/// Training and linked test data.
struct Sample {
  Problem train;
  Problem test;
  std::vector<KnownPair> truth;       ///< The links of `train`.
  std::optional<Vector> consensus{};  ///< What RS found, where that is known already.
};
[[nodiscard]] Sample sample_of(const SimulateOptions& options);

/// Σ(ŷ - y)² / Σ(y - ȳ)² on linked rows.
[[nodiscard]] double relative_error(const Model& bound, const Vector& w, const Problem& linked);

/// Transport cost of responses to features, whatever their links, over Σ(y - ȳ)².
[[nodiscard]] double transport_error(const Problem& unlinked, const Model& model, const Vector& w);

/// A method as experiments name it, on a sample: the options that its name stands for are set on top of `options`.
///   rs + robot     ROBOT from the consensus of RS
///   robot-paper    the same with the paper's step size, batches and number of steps
/// am, em and hard-em start from RS too where rows are hinted, as in the paper. `oracle` is told the truth.
[[nodiscard]] Fit fit_named(const std::string& method, const Sample& sample, const Model& model, FitOptions options);

/// relative_error, as given, and seconds of a fit.
[[nodiscard]] Measurements outcome_of(Measurement place, const Fit& made, double error);

/// The fit of a method; nothing for one that cannot run on the sample.
[[nodiscard]] std::optional<Fit> fit_where_possible(const std::string& method, const Sample& sample, const Model& model,
                                                    const FitOptions& options);

/// outcome_of a method on the sample's test rows; nothing for one that cannot run.
[[nodiscard]] Measurements try_method(const Measurement& place, const Sample& sample, const Model& model,
                                      const FitOptions& options);

}  // namespace unshuffle::app
