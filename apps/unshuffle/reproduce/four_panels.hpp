// Two platforms, everything shuffled: error against the two dimensions, the noise and the number of rows. Shared by the
// nonlinear and the linear experiment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reproduce/experiment.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace unshuffle::app {

using Trial = std::function<Measurements(const Measurement& place, const SimulateOptions& design)>;

/// Runs the trial for every setting, repetition and method of the four panels.
[[nodiscard]] Measurements measure_four_panels(const Settings& settings, Design design,
                                               const std::vector<std::string>& methods, const Trial& trial);

}  // namespace unshuffle::app
