// The camera's motion between two frames, from boxes alone: a robust regression without correspondence.
//
// Predicted boxes z_j and detections y_i are two tables whose links are lost. The regression function moves every box
// by a field affine in image position p, with p measured from the image centre in diagonals,
//   c ↦ c + D·B·(1, p_x, p_y),   B a 2×3 matrix.
// The cost of a pair saturates, so a pair too far apart to be one person has no influence, and the marginals of the
// plan are relaxed, so boxes of either table may stay unmatched (robust ROBOT). A ridge draws B towards an expected
// motion; the data term is a sum over boxes, so the ridge fades as their number grows.
#pragma once

#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/motion.hpp"
#include "unshuffle/transport/marginal.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct CameraOptions {
  /// How boxes may stay unmatched. A penalty on unmatched mass takes some 50 µs per plan; transport::Ball bounds the
  /// unmatched share instead, gives the same motion within noise, and takes some thirty times as long.
  transport::MarginalPolicy marginals = transport::KullbackLeibler{.strength = 0.3};
  double epsilon = 0.05;     ///< Smoothing of the plan; pair costs are between 0 and 1.
  double tolerance = 0.15;   ///< Residual, in box heights, at which a pair's influence begins to fade.
  double shift_sd = 0.02;    ///< Expected size of the shift, in image diagonals. Smaller: needs more boxes to move.
  double slope_sd = 0.02;    ///< Expected size of the part that varies over the image.
  double persistence = 0.5;  ///< Share of the last frame's motion expected to persist.
  int iterations = 4;        ///< Number of plans, each followed by weighted least squares.
  /// Predictions are kept with the motion that the other half of the tracks says: what a box has taken part in
  /// estimating cannot be tested on it.
  bool cross_fitted = false;
};

/// Throws InvalidInput naming the option, its value and what was expected.
void validate(const CameraOptions& options);

/// B above.
struct CameraMotion {
  Eigen::Matrix<double, 2, 3> field = Eigen::Matrix<double, 2, 3>::Zero();
  [[nodiscard]] Box apply(const Box& box, const Image& image) const;
};

[[nodiscard]] CameraMotion estimate_camera(const std::vector<Box>& predicted, const std::vector<Box>& detected,
                                           const Image& image, const CameraMotion& expected,
                                           const CameraOptions& options);

}  // namespace tracking
}  // namespace unshuffle
