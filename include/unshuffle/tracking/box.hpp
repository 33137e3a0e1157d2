// Boxes in an image, as MOTChallenge writes them: left, top, width, height in pixels.
#pragma once

#include "unshuffle/core/export.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  [[nodiscard]] double center_x() const { return left + width / 2; }
  [[nodiscard]] double center_y() const { return top + height / 2; }
  [[nodiscard]] double area() const { return width * height; }
};

/// Box of this size around a centre.
[[nodiscard]] inline Box box_around(double center_x, double center_y, double width, double height) {
  return {center_x - width / 2, center_y - height / 2, width, height};
}

/// Intersection over union; 0 for boxes without area.
[[nodiscard]] double overlap(const Box& a, const Box& b);

/// The box `share` of the way from a to b.
[[nodiscard]] Box between(const Box& a, const Box& b, double share);

}  // namespace tracking
}  // namespace unshuffle
