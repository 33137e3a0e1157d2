// A fit of tables in pieces: starts, choice and verdict from a sample of rows, the answer from all of them.
#pragma once

#include "unshuffle/fitted/fit.hpp"
#include "unshuffle/large/tables.hpp"

namespace unshuffle::large {

/// Whether the method can do without all rows in one memory.
[[nodiscard]] bool fits_in_pieces(Method method);

/// For one response, an additive model and the methods robot, robot_robust, entropic, mixture and automatic; models
/// that learn from the tables learn from the sample. Every process of the team calls it; only the leader gets a fit,
/// the others an empty one.
[[nodiscard]] Fit fit_large(const LargeTables& tables, const Model& model, const FitOptions& options, Team& team);

}  // namespace unshuffle::large
