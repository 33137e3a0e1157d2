// How far each coefficient may move before the likelihood falls too much.
#pragma once

#include "likelihood/likelihood.hpp"

namespace unshuffle {

/// How far the 95 % interval of every coefficient reaches below (column 0) and above (column 1) the optimum; NaN where
/// the likelihood falls too little to end it. `likelihood` makes one to work with; it curves upward at the optimum.
/// Where its curvature says less than `least_errors` of the coefficients, it is believed as much less. Needs the
/// Hessian (sorted backend).
[[nodiscard]] Matrix profile_margins(const std::function<LinkLikelihood()>& likelihood, const Optimum& optimum,
                                     const Vector& least_errors);

}  // namespace unshuffle
