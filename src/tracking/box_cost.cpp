#include "tracking/box_cost.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle::tracking {

double box_cost(const Box& predicted, const Box& detected, double diagonal) {
  const double distance =
      std::hypot(predicted.center_x() - detected.center_x(), predicted.center_y() - detected.center_y());
  return (distance / diagonal + 1 - overlap(predicted, detected)) / 2;
}

namespace {

/// Length of the common part of [a, a + la] and [b, b + lb] and its derivatives in a and la.
struct Common {
  double length;
  double by_start;
  double by_length;
};

Common common_part(double a, double la, double b, double lb) {
  const bool own_end = a + la < b + lb;
  const bool own_start = a > b;
  const double length = std::min(a + la, b + lb) - std::max(a, b);
  return {length, (own_end ? 1.0 : 0.0) - (own_start ? 1.0 : 0.0), own_end ? 1.0 : 0.0};
}

}  // namespace

// IoU = I/U with I = I_x I_y and U = w h + w' h' - I, so d IoU = (dI (U + I) - I d(w h)) / U².
Eigen::Vector4d box_cost_slope(const Box& predicted, const Box& detected, double diagonal) {
  const double dx = predicted.center_x() - detected.center_x();
  const double dy = predicted.center_y() - detected.center_y();
  const double distance = std::hypot(dx, dy);
  Eigen::Vector4d slope = Eigen::Vector4d::Zero();
  if (distance > 0) slope = Eigen::Vector4d(dx, dy, dx / 2, dy / 2) / (distance * diagonal);
  const Common x = common_part(predicted.left, predicted.width, detected.left, detected.width);
  const Common y = common_part(predicted.top, predicted.height, detected.top, detected.height);
  if (x.length > 0 && y.length > 0) {
    const double inner = x.length * y.length;
    const double outer = predicted.area() + detected.area() - inner;
    const Eigen::Vector4d d_inner(x.by_start * y.length, x.length * y.by_start, x.by_length * y.length,
                                  x.length * y.by_length);
    const Eigen::Vector4d d_area(0, 0, predicted.height, predicted.width);
    slope -= (d_inner * (outer + inner) - inner * d_area) / (outer * outer);
  }
  return slope / 2;
}

}  // namespace unshuffle::tracking
