#include "unshuffle/pixels/picture.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle::pixels {

std::array<double, 3> Picture::mean() const {
  std::array<double, 3> sum{};
  for (std::size_t at = 0; at < values.size(); ++at) sum[at % 3] += values[at];
  const double count = std::max<double>(1, double(width) * height);
  for (double& value : sum) value /= count;
  return sum;
}

// Pixel i covers [i, i+1) and its colour is that of its centre, so crop pixel u samples
// x = centre + ((u + ½)/side - ½)·extent - ½ on the grid of middles.
Crop crop(const Picture& picture, const tracking::Box& box, double extent, int side) {
  const std::array<double, 3> outside = picture.mean();
  const auto color = [&](int x, int y, std::size_t channel) {
    const bool inside = x >= 0 && y >= 0 && x < picture.width && y < picture.height;
    return inside ? double(picture.values[(std::size_t(y) * picture.width + x) * 3 + channel]) : outside[channel];
  };
  // Far outside there is only the mean; the bound keeps the integers below small.
  const auto place = [&](double center, int at, int length) {
    return std::clamp(center + ((at + 0.5) / side - 0.5) * extent - 0.5, -2.0, length + 1.0);
  };
  Crop result{side, std::vector<float>(std::size_t(3) * side * side)};
  for (int v = 0; v < side; ++v) {
    const double y = place(box.center_y(), v, picture.height);
    const int top = int(std::floor(y));
    const double down = y - top;
    for (int u = 0; u < side; ++u) {
      const double x = place(box.center_x(), u, picture.width);
      const int left = int(std::floor(x));
      const double right = x - left;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const double above = (1 - right) * color(left, top, channel) + right * color(left + 1, top, channel);
        const double below = (1 - right) * color(left, top + 1, channel) + right * color(left + 1, top + 1, channel);
        result.values[(channel * side + v) * side + u] = float((1 - down) * above + down * below);
      }
    }
  }
  return result;
}

double context_of(const tracking::Box& box) {
  const double margin = (box.width + box.height) / 2;
  return std::sqrt((box.width + margin) * (box.height + margin));
}

Crop target_crop(const Picture& picture, const tracking::Box& box) {
  return crop(picture, box, context_of(box), target_side);
}

Crop search_crop(const Picture& picture, const tracking::Box& box) {
  return crop(picture, box, context_of(box) * search_side / target_side, search_side);
}

}  // namespace unshuffle::pixels
