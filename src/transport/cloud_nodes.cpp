#include "transport/cloud_nodes.hpp"

#include <Eigen/QR>

#include <cmath>
#include <limits>
#include <numeric>

namespace unshuffle::transport {
namespace {

/// Polynomials a box may need, at most: weights of its nodes take the cube of this.
constexpr Index most_polynomials = 220;

Index polynomials(Index degree, Index dimension) {
  double count = 1;
  for (Index o = 1; o <= dimension; ++o) count *= static_cast<double>(degree + o) / static_cast<double>(o);
  return static_cast<Index>(std::lround(std::min(count, 1e9)));
}

/// The least degree of polynomials that follow exp(-|s - t|²/ε) within `accuracy` in a box of half diagonal R wherever
/// t is, by the size of the next term of its Taylor series, (R/√(2ε))ᵏ √(2ᵏ/k!) at most; -1: none that is affordable.
Index degree_for(double half_diagonal, double epsilon, Index dimension, double accuracy) {
  const double ratio = half_diagonal / std::sqrt(2 * epsilon);
  double term = 1;
  for (Index degree = 0; polynomials(degree, dimension) <= most_polynomials; ++degree) {
    term *= ratio / std::sqrt(static_cast<double>(degree + 1));
    if (term <= accuracy && ratio * ratio < static_cast<double>(degree + 1)) return degree;
  }
  return -1;
}

/// Products of Chebyshev polynomials up to a total degree, on the corners of a box.
class Polynomials {
 public:
  Polynomials(Index degree, Index dimension) : degree_(degree) {
    std::vector<Index> exponents(at(dimension), 0);
    enumerate(exponents, 0, degree);
  }

  [[nodiscard]] Matrix at_points(const MatrixRef& points, const VectorRef& low, const VectorRef& high) const {
    std::vector<Matrix> powers;
    for (Index o = 0; o < points.cols(); ++o) {
      const double half = 0.5 * (high[o] - low[o]);
      const Vector y = half > 0 ? Vector((points.col(o).array() - low[o]) / half - 1) : Vector(0 * points.col(o));
      Matrix t(points.rows(), degree_ + 1);
      t.col(0).setOnes();
      if (degree_ > 0) t.col(1) = y;
      for (Index k = 2; k <= degree_; ++k) t.col(k) = 2 * y.cwiseProduct(t.col(k - 1)) - t.col(k - 2);
      powers.push_back(std::move(t));
    }
    Matrix values(points.rows(), static_cast<Index>(exponents_.size()));
    for (std::size_t k = 0; k < exponents_.size(); ++k) {
      auto value = values.col(static_cast<Index>(k));
      value = powers[0].col(exponents_[k][0]);
      for (std::size_t o = 1; o < powers.size(); ++o) value.array() *= powers[o].col(exponents_[k][o]).array();
    }
    return values;
  }

 private:
  void enumerate(std::vector<Index>& exponents, std::size_t coordinate, Index left) {
    if (coordinate == exponents.size()) {
      exponents_.push_back(exponents);
      return;
    }
    for (exponents[coordinate] = 0; exponents[coordinate] <= left; ++exponents[coordinate])
      enumerate(exponents, coordinate + 1, left - exponents[coordinate]);
    exponents[coordinate] = 0;
  }

  Index degree_;
  std::vector<std::vector<Index>> exponents_;
};

/// Takes rows out as long as there are directions in which weights may move without changing any sum.
void eliminate(const Matrix& functions, Vector& weights) {
  const Index rows = functions.rows(), spare = rows - functions.cols();
  if (spare <= 0) return;
  const Eigen::HouseholderQR<Matrix> qr(functions);
  Matrix null = Matrix::Zero(rows, spare);
  null.bottomRows(spare).setIdentity();
  null = qr.householderQ() * null;
  for (Index k = 0; k < spare; ++k) {
    // Along ±z, whichever makes the larger entry zero first: the others are divided by it.
    std::array<double, 2> step{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    std::array<Index, 2> out{-1, -1};
    for (Index i = 0; i < rows; ++i) {
      const std::size_t side = null(i, k) > 0 ? 0 : 1;
      if (!(weights[i] > 0) || null(i, k) == 0) continue;
      const double here = weights[i] / std::abs(null(i, k));
      if (here < step[side]) {
        step[side] = here;
        out[side] = i;
      }
    }
    const auto entry = [&](std::size_t side) { return out[side] < 0 ? 0 : std::abs(null(out[side], k)); };
    const std::size_t side = entry(0) >= entry(1) ? 0 : 1;
    const Index gone = out[side];
    if (gone < 0) continue;
    weights = (weights - (side == 0 ? step[0] : -step[1]) * null.col(k)).cwiseMax(0.0);
    weights[gone] = 0;
    const Index left = spare - k - 1;
    const Eigen::RowVectorXd share = null.row(gone).tail(left) / null(gone, k);
    null.rightCols(left).noalias() -= null.col(k) * share;
    null.row(gone).tail(left).setZero();
  }
}

/// The points of the boxes: of every box either all, or nodes.
class Plan {
 public:
  Plan(const PointCloud& cloud, double epsilon, double accuracy) : cloud_(cloud) {
    const std::size_t boxes = cloud.boxes().size();
    degree_.assign(boxes, -1);
    std::vector<Index> nodes(boxes);
    for (std::size_t b = boxes; b-- > 0;) {
      const CloudBox& box = cloud.boxes()[b];
      const auto number = static_cast<Index>(b);
      nodes[b] = box.is_leaf() ? box.count : nodes[at(box.left)] + nodes[at(box.right)];
      const double half_diagonal = 0.5 * (cloud.high(number) - cloud.low(number)).norm();
      const Index degree = degree_for(half_diagonal, epsilon, cloud.dimension(), accuracy);
      if (degree < 0) continue;
      const Index needed = polynomials(degree, cloud.dimension());
      if (2 * needed > box.count || needed > nodes[b]) continue;
      nodes[b] = needed;
      degree_[b] = degree;
    }
    collect(0);
  }

  [[nodiscard]] bool any() const { return !compressed_.empty(); }

  [[nodiscard]] CloudNodes made() const {
    Vector weights = cloud_.weights();
    const auto boxes = static_cast<Index>(compressed_.size());
#pragma omp parallel for schedule(dynamic, 1)
    for (Index k = 0; k < boxes; ++k) {
      const Index b = compressed_[at(k)];
      const CloudBox& box = cloud_.boxes()[at(b)];
      const Matrix values =
          Polynomials(degree_[at(b)], cloud_.dimension())
              .at_points(cloud_.points().middleRows(box.first, box.count), cloud_.low(b), cloud_.high(b));
      weights.segment(box.first, box.count) = recombined(values, weights.segment(box.first, box.count));
    }
    std::vector<Index> kept;
    for (Index i = 0; i < weights.size(); ++i)
      if (weights[i] > 0) kept.push_back(i);
    CloudNodes nodes{PointCloud(cloud_.points()(kept, Eigen::all), weights(kept)), {}};
    for (const Index i : nodes.points.order()) nodes.from.push_back(kept[at(i)]);
    return nodes;
  }

 private:
  void collect(Index b) {
    if (degree_[at(b)] >= 0) {
      compressed_.push_back(b);
    } else if (const CloudBox& box = cloud_.boxes()[at(b)]; !box.is_leaf()) {
      collect(box.left);
      collect(box.right);
    }
  }

  const PointCloud& cloud_;
  std::vector<Index> degree_;  // of every box; -1: its points, or its children's
  std::vector<Index> compressed_;
};

}  // namespace

// Rows are put together in twice as many groups as there are functions, each with its mean: of these groups at least
// half can be left out, and so on with the rows that remain (Tchernychova and Lyons).
Vector recombined(const Matrix& functions, Vector weights) {
  const Index most = functions.cols();
  std::vector<Index> present;
  for (;;) {
    present.clear();
    for (Index i = 0; i < weights.size(); ++i)
      if (weights[i] > 0) present.push_back(i);
    const auto count = static_cast<Index>(present.size());
    if (count <= most) return weights;
    const Index groups = std::min(count, 2 * most);
    Matrix means = Matrix::Zero(groups, most);
    Vector mass = Vector::Zero(groups);
    for (Index k = 0; k < count; ++k) {
      const Index g = k % groups, i = present[at(k)];
      means.row(g) += weights[i] * functions.row(i);
      mass[g] += weights[i];
    }
    means.array().colwise() /= mass.array();
    Vector left = mass;
    eliminate(means, left);
    for (Index k = 0; k < count; ++k) {
      const Index g = k % groups;
      weights[present[at(k)]] *= left[g] / mass[g];
    }
    if ((left.array() > 0).count() == groups) return weights;
  }
}

CloudNodes nodes_of(const PointCloud& cloud, double epsilon, double accuracy) {
  const Plan plan(cloud, epsilon, accuracy);
  if (!plan.any()) return {cloud, {}};
  return plan.made();
}

}  // namespace unshuffle::transport
