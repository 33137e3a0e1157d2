#include "unshuffle/tracking/box.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle::tracking {

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.left + a.width, b.left + b.width) - std::max(a.left, b.left);
  const double height = std::min(a.top + a.height, b.top + b.height) - std::max(a.top, b.top);
  if (!(width > 0 && height > 0)) return 0;
  const double common = width * height;
  return common / (a.area() + b.area() - common);
}

Box between(const Box& a, const Box& b, double share) {
  return {std::lerp(a.left, b.left, share), std::lerp(a.top, b.top, share), std::lerp(a.width, b.width, share),
          std::lerp(a.height, b.height, share)};
}

}  // namespace unshuffle::tracking
