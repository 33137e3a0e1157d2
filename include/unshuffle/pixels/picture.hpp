// Pictures in memory and the crops that the Siamese network uses; no library needed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/box.hpp"

namespace unshuffle {
namespace pixels UNSHUFFLE_EXPORT {

/// Rows of blue, green and red bytes.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> values;

  [[nodiscard]] std::array<double, 3> mean() const;
};

/// A square of floats from 0 to 255, one plane per colour: blue, green, red.
struct Crop {
  int side = 0;
  std::vector<float> values;
};

/// The square of `extent` image pixels around a box's centre, sampled bilinearly at side × side places. What lies
/// outside the picture has its mean colour.
[[nodiscard]] Crop crop(const Picture& picture, const tracking::Box& box, double extent, int side);

constexpr int target_side = 127;
constexpr int siam_rpn_search_side = 271;

/// Image pixels covered by the crop that shows a box with its surroundings: √((w+p)(h+p)), p = (w+h)/2.
[[nodiscard]] double context_of(const tracking::Box& box);

/// The two crops of a Siamese network, both at target_side / context_of(box) crop pixels per image pixel. They are
/// sampled and not cut out, so no side is rounded to whole pixels and a box's centre is the crop's.
[[nodiscard]] Crop target_crop(const Picture& picture, const tracking::Box& box);
[[nodiscard]] Crop search_crop(const Picture& picture, const tracking::Box& box, int side);

}  // namespace pixels
}  // namespace unshuffle
