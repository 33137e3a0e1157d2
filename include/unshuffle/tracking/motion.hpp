// Where a box will be in the next frame: the regression function f whose links between frames are lost.
//
// Everything is measured in heights of the box, so that near and far people share one model:
//   f(track) = (Δx/h, Δy/h, Δ log h),  without the camera's motion between the frames.
// Inputs are a constant and the place in the image (together: motion affine in image position), the last displacement
// and a smoothed one. All parameters zero is the identity: every box stays where it is.
#pragma once

#include <cstdint>
#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"
#include "unshuffle/tracking/box.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

using Motion = Eigen::Vector3d;  ///< Δx/h, Δy/h, Δ log h per frame.

/// The inputs of a motion model.
struct TrackState {
  Box box;                         ///< Where it is now; while nothing is detected, where it was predicted.
  Motion last = Motion::Zero();    ///< Between its last two detections, per frame.
  Motion smooth = Motion::Zero();  ///< Average over recent detections.
};

struct Image {
  double width = 1;
  double height = 1;
  [[nodiscard]] double diagonal() const;
};

constexpr int motion_inputs = 9;
using MotionInput = Eigen::Matrix<double, motion_inputs, 1>;

[[nodiscard]] MotionInput motion_input(const TrackState& track, const Image& image);

/// The box after a motion; the width keeps its ratio to the height.
[[nodiscard]] Box moved(const Box& box, const Motion& motion);

/// Linear in its inputs, plus a layer of `hidden` tanh units when there are any.
class MotionModel {
 public:
  /// Boxes stay where they are.
  explicit MotionModel(int hidden = 0);

  [[nodiscard]] static MotionModel constant_velocity(int hidden = 0);

  /// Hidden weights are drawn; the output weights are zero, so the model starts as the identity.
  void draw_hidden_weights(std::uint64_t seed);

  [[nodiscard]] Motion predict(const MotionInput& input) const;

  /// gradient += (d output/d parameters)ᵀ · slope.
  void add_gradient(const MotionInput& input, const Motion& slope, Eigen::Ref<Vector> gradient) const;

  [[nodiscard]] int hidden() const { return hidden_; }
  [[nodiscard]] Index size() const { return values_.size(); }
  [[nodiscard]] const Vector& values() const { return values_; }
  void set_values(const Vector& values);

 private:
  [[nodiscard]] Eigen::Map<const Eigen::Matrix<double, 3, motion_inputs>> linear() const;
  [[nodiscard]] Eigen::Map<const Matrix> hidden_weights() const;  ///< hidden × inputs.
  [[nodiscard]] Eigen::Map<const Matrix> output_weights() const;  ///< 3 × hidden.

  int hidden_;
  Vector values_;
};

}  // namespace tracking
}  // namespace unshuffle
