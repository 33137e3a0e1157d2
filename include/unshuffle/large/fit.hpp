// A fit of tables in pieces: starts, choice and verdict from a sample of rows, the answer from all of them.
#pragma once

#include <optional>

#include "unshuffle/core/export.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/large/tables.hpp"

namespace unshuffle {
namespace large UNSHUFFLE_EXPORT {

/// For one response, an additive model and the estimators that can stream; models that depend on the tables (splines)
/// are set up from the sample. Every process of the team calls it; only the leader gets a fit.
[[nodiscard]] std::optional<Fitted> fit_large(const LargeTables& tables, const Model& model, const Estimator& estimator,
                                              const Execution& execution, Team& team);

}  // namespace large
}  // namespace unshuffle
