// How unlike a predicted and a detected box are: C = ½ (|Δcentre| / image diagonal + 1 - IoU), in [0, 1].
#pragma once

#include <Eigen/Core>
#include <vector>

#include "unshuffle/core/types.hpp"
#include "unshuffle/tracking/motion.hpp"

namespace unshuffle::tracking {

[[nodiscard]] double box_cost(const Box& predicted, const Box& detected, double diagonal);

/// dC/d(left, top, width, height) of the predicted box. Where boxes do not overlap only the distance has a slope; where
/// edges or centres coincide it is one of the one-sided slopes.
[[nodiscard]] Eigen::Vector4d box_cost_slope(const Box& predicted, const Box& detected, double diagonal);

}  // namespace unshuffle::tracking
