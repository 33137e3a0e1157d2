// Models by name, and restored from a stored fit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// "linear", "sine", "rigid", "similarity", "affine" or "spline:K"; throws InvalidInput for anything else. `intercept`
/// is ignored by the sine model and by the maps.
[[nodiscard]] std::unique_ptr<Model> make_model(const std::string& spec, bool intercept);

/// What a bound model learned from its tables (knots, centring) as plain numbers; empty unless it is a spline.
[[nodiscard]] std::vector<double> model_state(const Model& bound);

/// The bound model of an earlier fit, ready to predict for new tables.
[[nodiscard]] std::unique_ptr<Model> restore_model(const std::string& spec, bool intercept,
                                                   std::vector<std::string> x_names, std::vector<std::string> z_names,
                                                   std::vector<std::string> y_names, const std::vector<double>& state);

}  // namespace unshuffle
