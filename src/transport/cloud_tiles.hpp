// The arithmetic of one pair of boxes. Rows are padded to whole vector registers and aligned, so that sums do not
// depend on where arrays happen to lie.
#pragma once

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#include "transport/point_cloud.hpp"

namespace unshuffle::transport {

/// Numbers in tiles of a row box that stay between two products: as many as fit into a processor's own cache.
inline constexpr Index most_kept = Index{1} << 17;
inline constexpr Index most_dimensions = 8, lanes = 8;
inline constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

using AlignedArray = Eigen::Map<Eigen::ArrayXd, Eigen::Aligned64>;
using ConstAlignedArray = Eigen::Map<const Eigen::ArrayXd, Eigen::Aligned64>;

/// A number for every row of a box.
struct alignas(64) RowNumbers {
  std::array<double, PointCloud::leaf_size> numbers{};
  [[nodiscard]] AlignedArray first(Index count) { return {numbers.data(), count}; }
  [[nodiscard]] ConstAlignedArray first(Index count) const { return {numbers.data(), count}; }
};

/// Column by column, each as long as the panel of rows is padded.
struct alignas(64) Tile {
  std::array<double, PointCloud::leaf_size * PointCloud::leaf_size> numbers;
};

/// Room for tiles that are kept.
class TileStore {
 public:
  /// What it held is lost.
  void resize(std::size_t size) {
    constexpr std::size_t line = 64;
    numbers_.reset(static_cast<double*>(std::aligned_alloc(line, (size * sizeof(double) / line + 1) * line)));
    if (numbers_ == nullptr) throw std::bad_alloc();
  }
  void clear() { numbers_.reset(); }
  [[nodiscard]] double* at(std::size_t place) const { return numbers_.get() + place; }

 private:
  std::unique_ptr<double[], decltype(&std::free)> numbers_{nullptr, &std::free};
};

/// The rows of a box side by side. Padding repeats the last row.
struct RowPanel {
  RowPanel(const PointCloud& cloud, const CloudBox& box);
  /// The box's part of a vector; the padding repeats the last number, or is zero.
  [[nodiscard]] RowNumbers part(const VectorRef& of) const;
  [[nodiscard]] RowNumbers part_and_zeros(const VectorRef& of) const;

  Index first, count, padded;
  std::array<RowNumbers, most_dimensions> coordinates;
};

/// |t_i - s_j|² of all rows of the panel.
inline void squared_distances(const RowPanel& panel, const PointCloud& columns, Index j, RowNumbers& into) {
  auto sum = into.first(panel.padded);
  sum = (panel.coordinates[0].first(panel.padded) - columns.points()(j, 0)).square();
  for (Index o = 1; o < columns.dimension(); ++o)
    sum += (panel.coordinates[at(o)].first(panel.padded) - columns.points()(j, o)).square();
}

/// Σ a_i b_i in an order that depends on nothing but the number of rows.
[[nodiscard]] inline double dot(const ConstAlignedArray& a, const ConstAlignedArray& b) {
  Eigen::Array<double, lanes, 1> sums = Eigen::Array<double, lanes, 1>::Zero();
  for (Index i = 0; i < a.size(); i += lanes) sums += a.segment<lanes>(i) * b.segment<lanes>(i);
  return sums.sum();
}

}  // namespace unshuffle::transport
