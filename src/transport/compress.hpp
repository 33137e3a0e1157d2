// Replaces an empirical measure on a line by a few nodes that integrate smooth functions equally well
// (docs/mathematics.md §4.2).
//
// Potentials and everything computed from them are smooth at the scale √ε. The points are grouped into cells, a
// fraction of √ε wide, and cells are joined to boxes, a few times √ε wide. Each box's measure is replaced by its own
// p-point Gauss quadrature: positive weights, exact for polynomials of degree 2p-1. The transport problem on the nodes
// is then the original one to many digits, whatever the number of points. Boxes with at most p points keep them.
//
// Functions come back to the points cell by cell: the caller evaluates them on grid(), a few Chebyshev points per cell
// (or the points themselves where a cell has few), and interpolate() fills in the points. spread() is the transpose,
// which moves a signed measure on the points to one on the grid. (Cells are narrower than boxes because potentials have
// complex singularities about √ε off the line, which affect interpolation but not quadrature against the kernel.)
#pragma once

#include <cstdint>
#include <vector>

#include "transport/line.hpp"

namespace unshuffle::transport {

struct CompressionRule {
  double box_width = 0;   ///< Widest box, in the unit of the positions.
  double cell_width = 0;  ///< Widest cell.
  int order = 12;         ///< p, nodes per box.
  int grid_order = 12;    ///< Chebyshev points per cell.

  /// Where boxes and cells must be narrower: positions (ascending) and by which factors.
  std::vector<double> narrow_at, box_factor, cell_factor;

  bool operator==(const CompressionRule&) const = default;

  /// The widest box or cell that may cover [low, high].
  [[nodiscard]] double widest_box(double low, double high) const { return box_width * smallest(box_factor, low, high); }
  [[nodiscard]] double widest_cell(double low, double high) const {
    return cell_width * smallest(cell_factor, low, high);
  }

 private:
  [[nodiscard]] double smallest(const std::vector<double>& factor, double low, double high) const;
};

struct Range {
  double low, high;
  [[nodiscard]] double length() const { return high - low; }
};

/// A stretch of the measure represented by nodes [first, last); width 0 where they are its own points.
struct Box {
  Index first, last;
  double width;
};

class CompressedMeasure {
 public:
  CompressedMeasure() = default;
  /// `weight` may be empty: all points weigh the same. Total mass is preserved. Points of zero weight must be excluded.
  CompressedMeasure(const VectorRef& position, const VectorRef& weight, const CompressionRule& rule);

  /// Whether these arguments would give the same result.
  [[nodiscard]] bool is_of(const VectorRef& position, const VectorRef& weight, const CompressionRule& rule) const;

  [[nodiscard]] const LineMeasure& nodes() const { return nodes_; }
  [[nodiscard]] const Vector& grid() const { return grid_; }
  /// Nothing was approximated: the nodes are the points (ties merged).
  [[nodiscard]] bool exact() const { return exact_; }
  [[nodiscard]] const std::vector<Box>& boxes() const { return boxes_; }
  /// For every node, the width of the cell around it, 0 where the cell's points are on the grid themselves.
  [[nodiscard]] Vector interpolated_width() const;

  /// Values at the points, in the caller's order, of a function given on the grid.
  [[nodiscard]] Vector interpolate(const VectorRef& on_grid) const;
  /// Transpose of interpolate().
  [[nodiscard]] Vector spread(const VectorRef& on_points) const;

 private:
  struct Cell {
    Index begin, end;  // of the points, in grouped order
    double centre, half_width;
    bool direct;  // the grid holds the points themselves, ties merged
    Index first_grid = 0, grid_size = 0;
  };
  /// Weighted positions standing for a part of the measure.
  struct Atoms {
    std::vector<double> position, weight;
  };

  using Order = Eigen::Matrix<std::uint32_t, Eigen::Dynamic, 1>;

  [[nodiscard]] bool fits_a_cell(const Range& range, Index count) const;
  void add_cell(Index begin, Index end, const Range& range);
  /// Splits points into cells from `begin` on; `order` is their place with the caller, empty: the one they have here.
  void distribute(Index begin, const VectorRef& position, const Order& order, const Range& range);
  void sort(Index begin, Index end);
  [[nodiscard]] Atoms atoms_of(const Cell& cell) const;
  void place_nodes(const std::vector<Atoms>& atoms);
  void place_grid(const std::vector<Atoms>& atoms);
  template <class Body>
  void for_each_direct_point(const Cell& cell, Body body) const;

  CompressionRule rule_;
  Order order_;               // grouped order → caller's order
  Vector position_, weight_;  // grouped; weight_ empty when equal
  double equal_weight_ = 0;
  std::vector<Cell> cells_;
  std::vector<Box> boxes_;
  LineMeasure nodes_;
  Vector grid_;
  bool exact_ = true;
};

/// p-point (or fewer, when the measure has fewer distinct points) Gauss quadrature of a discrete measure on [-1, 1].
struct Quadrature {
  Vector node, weight;
};
[[nodiscard]] Quadrature gauss_quadrature(const VectorRef& position, const VectorRef& weight, int order);

}  // namespace unshuffle::transport
