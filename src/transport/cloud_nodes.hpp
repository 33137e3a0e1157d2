// Few points of a cloud that stand for all of them (docs/mathematics.md §2.9).
#pragma once

#include <vector>

#include "transport/point_cloud.hpp"

namespace unshuffle::transport {

/// Points of a cloud with new weights, so that sums over them of what a plan at some ε is as a function of position are
/// those over the whole cloud.
struct CloudNodes {
  PointCloud points;
  /// The point, in the cloud's order, that each node is, in the nodes' order; empty: the nodes are the cloud.
  std::vector<Index> from;
};

/// Boxes that hold at least twice as many points as polynomials of the degree that `accuracy`, relative to a sum, takes
/// in a box of that size; the points of all other boxes stay as they are.
[[nodiscard]] CloudNodes nodes_of(const PointCloud& cloud, double epsilon, double accuracy);

/// Weights for at most as many rows of `functions` as it has columns, all others zero, none negative, that leave
/// functionsᵀ weights as it is. The first column has to be constant.
[[nodiscard]] Vector recombined(const Matrix& functions, Vector weights);

}  // namespace unshuffle::transport
