#include "transport/point_cloud.hpp"

#include <algorithm>
#include <numeric>

namespace unshuffle::transport {

PointCloud::PointCloud(const Matrix& points, const Vector& weights) : order_(at(points.rows())) {
  std::iota(order_.begin(), order_.end(), Index{0});
  divide(points, 0, points.rows());
  points_ = points(order_, Eigen::all);
  weights_ = weights(order_);
  const auto boxes = static_cast<Index>(boxes_.size());
  low_.resize(points.cols(), boxes);
  high_.resize(points.cols(), boxes);
  for (Index b = 0; b < boxes; ++b) {
    const CloudBox& box = boxes_[at(b)];
    low_.col(b) = points_.middleRows(box.first, box.count).colwise().minCoeff().transpose();
    high_.col(b) = points_.middleRows(box.first, box.count).colwise().maxCoeff().transpose();
    if (box.is_leaf()) leaves_.push_back(b);
  }
}

/// Divides at the median of the widest coordinate; returns the number of the box.
Index PointCloud::divide(const Matrix& points, Index first, Index count) {
  const auto number = static_cast<Index>(boxes_.size());
  boxes_.push_back({first, count});
  if (count <= leaf_size) return number;
  const auto begin = order_.begin() + first, end = begin + count;
  Index widest = 0;
  double width = -1;
  for (Index o = 0; o < points.cols(); ++o) {
    const auto [least, most] =
        std::minmax_element(begin, end, [&](Index a, Index b) { return points(a, o) < points(b, o); });
    const double here = points(*most, o) - points(*least, o);
    if (here > width) {
      width = here;
      widest = o;
    }
  }
  std::nth_element(begin, begin + count / 2, end, [&](Index a, Index b) {
    return points(a, widest) < points(b, widest) || (points(a, widest) == points(b, widest) && a < b);
  });
  const Index left = divide(points, first, count / 2);
  const Index right = divide(points, first + count / 2, count - count / 2);
  boxes_[at(number)].left = left;
  boxes_[at(number)].right = right;
  return number;
}

Matrix PointCloud::to_rows(const MatrixRef& by_point) const {
  Matrix by_row(by_point.rows(), by_point.cols());
  by_row(order_, Eigen::all) = by_point;
  return by_row;
}

Vector PointCloud::largest_in_boxes(const Vector& of) const {
  Vector largest(static_cast<Index>(boxes_.size()));
  for (auto b = static_cast<Index>(boxes_.size()) - 1; b >= 0; --b) {
    const CloudBox& box = boxes_[at(b)];
    largest[b] =
        box.is_leaf() ? of.segment(box.first, box.count).maxCoeff() : std::max(largest[box.left], largest[box.right]);
  }
  return largest;
}

double least_squared_distance(const PointCloud& a, Index box_a, const PointCloud& b, Index box_b) {
  double sum = 0;
  for (Index o = 0; o < a.dimension(); ++o) {
    const double apart = std::max(a.low(box_a)[o] - b.high(box_b)[o], b.low(box_b)[o] - a.high(box_a)[o]);
    if (apart > 0) sum += apart * apart;
  }
  return sum;
}

double largest_squared_distance(const PointCloud& a, Index box_a, const PointCloud& b, Index box_b) {
  double sum = 0;
  for (Index o = 0; o < a.dimension(); ++o) {
    const double apart = std::max(a.high(box_a)[o] - b.low(box_b)[o], b.high(box_b)[o] - a.low(box_a)[o]);
    sum += apart * apart;
  }
  return sum;
}

namespace {

double largest_between_leaves(const PointCloud& a, const CloudBox& in_a, const PointCloud& b, const CloudBox& in_b) {
  double largest = 0;
  for (Index j = in_b.first; j < in_b.first + in_b.count; ++j) {
    for (Index i = in_a.first; i < in_a.first + in_a.count; ++i)
      largest = std::max(largest, (a.points().row(i) - b.points().row(j)).squaredNorm());
  }
  return largest;
}

}  // namespace

double largest_squared_distance(const PointCloud& a, const PointCloud& b) {
  struct Candidate {
    double bound;
    Index box_a, box_b;
    bool operator<(const Candidate& other) const { return bound < other.bound; }
  };
  double largest = 0;
  std::vector<Candidate> heap{{largest_squared_distance(a, 0, b, 0), 0, 0}};
  const auto consider = [&](Index box_a, Index box_b) {
    heap.push_back({largest_squared_distance(a, box_a, b, box_b), box_a, box_b});
    std::push_heap(heap.begin(), heap.end());
  };
  while (!heap.empty() && heap.front().bound > largest) {
    const Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    const CloudBox &in_a = a.boxes()[at(best.box_a)], &in_b = b.boxes()[at(best.box_b)];
    if (in_a.is_leaf() && in_b.is_leaf()) {
      largest = std::max(largest, largest_between_leaves(a, in_a, b, in_b));
    } else if (in_b.is_leaf() || (!in_a.is_leaf() && in_a.count > in_b.count)) {
      consider(in_a.left, best.box_b);
      consider(in_a.right, best.box_b);
    } else {
      consider(best.box_a, in_b.left);
      consider(best.box_a, in_b.right);
    }
  }
  return largest;
}

namespace {

/// Means of neighbouring points.
class Means {
 public:
  Means(const PointCloud& cloud, const Vector& values, double diagonal)
      : cloud_(cloud), values_(values), diagonal_(diagonal), order_(at(cloud.size())) {
    std::iota(order_.begin(), order_.end(), Index{0});
    divide(0, cloud.size());
  }

  [[nodiscard]] CoarseCloud made() const {
    const Index width = 2 + cloud_.dimension();
    const Matrix table =
        Eigen::Map<const Matrix>(numbers_.data(), width, static_cast<Index>(numbers_.size()) / width).transpose();
    CoarseCloud coarse{PointCloud(table.rightCols(cloud_.dimension()), table.col(0)), {}};
    if (values_.size() > 0) coarse.values = coarse.points.from_rows(table.col(1));
    return coarse;
  }

 private:
  void divide(Index first, Index count) {
    const std::vector<Index> here(order_.begin() + first, order_.begin() + first + count);
    const Matrix points = cloud_.points()(here, Eigen::all);
    const Eigen::RowVectorXd widths = points.colwise().maxCoeff() - points.colwise().minCoeff();
    if (count == 1 || widths.norm() <= diagonal_) return add(here, points);
    Index widest = 0;
    widths.maxCoeff(&widest);
    const auto x = cloud_.points().col(widest);
    const auto begin = order_.begin() + first;
    std::nth_element(begin, begin + count / 2, begin + count,
                     [&](Index a, Index b) { return x[a] < x[b] || (x[a] == x[b] && a < b); });
    divide(first, count / 2);
    divide(first + count / 2, count - count / 2);
  }

  void add(const std::vector<Index>& here, const Matrix& points) {
    const Vector weights = cloud_.weights()(here);
    const double weight = weights.sum();
    numbers_.push_back(weight);
    numbers_.push_back(values_.size() > 0 ? weights.dot(values_(here)) / weight : 0);
    for (Index o = 0; o < points.cols(); ++o) numbers_.push_back(weights.dot(points.col(o)) / weight);
  }

  const PointCloud& cloud_;
  const Vector& values_;
  double diagonal_;
  std::vector<Index> order_;
  std::vector<double> numbers_;  // of every new point: weight, value, coordinates
};

}  // namespace

CoarseCloud coarser(const PointCloud& cloud, const Vector& values, double diagonal) {
  return Means(cloud, values, diagonal).made();
}

}  // namespace unshuffle::transport
