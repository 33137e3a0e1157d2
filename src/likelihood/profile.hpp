// How far each coefficient can move before the likelihood falls too far.
#pragma once

#include "likelihood/likelihood.hpp"

namespace unshuffle {

/// How far the 95 % interval of every coefficient extends below (column 0) and above (column 1) the optimum; NaN where
/// the likelihood falls too little to bound it. `likelihood` creates one to work with, which must be convex at the
/// optimum. Where its curvature implies smaller errors than `least_errors`, intervals are widened accordingly. Needs
/// the Hessian (sorted backend).
[[nodiscard]] Matrix profile_margins(const std::function<LinkLikelihood()>& likelihood, const Optimum& optimum,
                                     const Vector& least_errors);

}  // namespace unshuffle
