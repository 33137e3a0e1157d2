// Points of R^o with weights, in boxes: the leaves of a k-d tree (docs/mathematics.md §2.9).
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

[[nodiscard]] constexpr std::size_t at(Index k) { return static_cast<std::size_t>(k); }

/// A node of the tree. Its points are consecutive in box order; the root is box 0, children follow their parents.
struct CloudBox {
  Index first = 0, count = 0;
  Index left = -1, right = -1;
  [[nodiscard]] bool is_leaf() const { return left < 0; }
};

class PointCloud {
 public:
  /// Points in a leaf, at most.
  static constexpr Index leaf_size = 64;

  PointCloud() = default;
  /// One point a row; `weights` are positive. The order of the rows affects only the order of equal coordinates.
  PointCloud(const Matrix& points, const Vector& weights);

  [[nodiscard]] Index size() const { return points_.rows(); }
  [[nodiscard]] Index dimension() const { return points_.cols(); }
  /// In box order, like everything else here.
  [[nodiscard]] const Matrix& points() const { return points_; }
  [[nodiscard]] const Vector& weights() const { return weights_; }
  /// The row from which each point came.
  [[nodiscard]] const std::vector<Index>& order() const { return order_; }
  [[nodiscard]] Matrix from_rows(const MatrixRef& by_row) const { return by_row(order_, Eigen::all); }
  [[nodiscard]] Matrix to_rows(const MatrixRef& by_point) const;

  [[nodiscard]] const std::vector<CloudBox>& boxes() const { return boxes_; }
  /// Boxes that are leaves, in box order.
  [[nodiscard]] const std::vector<Index>& leaves() const { return leaves_; }
  [[nodiscard]] const CloudBox& leaf(Index number) const { return boxes_[at(leaves_[at(number)])]; }
  /// Corners of a box as tight as its points allow.
  [[nodiscard]] auto low(Index box) const { return low_.col(box); }
  [[nodiscard]] auto high(Index box) const { return high_.col(box); }
  /// Of one number a point.
  [[nodiscard]] Vector largest_in_boxes(const Vector& of) const;

 private:
  Index divide(const Matrix& points, Index first, Index count);

  Matrix points_;
  Vector weights_;
  std::vector<Index> order_;
  std::vector<CloudBox> boxes_;
  std::vector<Index> leaves_;
  Matrix low_, high_;  // one column a box
};

/// Between two boxes.
[[nodiscard]] double least_squared_distance(const PointCloud& a, Index box_a, const PointCloud& b, Index box_b);
[[nodiscard]] double largest_squared_distance(const PointCloud& a, Index box_a, const PointCloud& b, Index box_b);
/// Between any two points.
[[nodiscard]] double largest_squared_distance(const PointCloud& a, const PointCloud& b);

/// The cloud divided further, at medians, until no part has a longer diagonal, and every part replaced by its mean.
struct CoarseCloud {
  PointCloud points;
  Vector values;  ///< Likewise means of one number a point; empty when there are none.
};
[[nodiscard]] CoarseCloud coarser(const PointCloud& cloud, const Vector& values, double diagonal);

}  // namespace unshuffle::transport
