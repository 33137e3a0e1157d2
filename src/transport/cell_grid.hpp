// Functions on a line by piecewise Chebyshev series whose pieces depend only on a range and a rule, so that points held
// by different processes can share them.
//
// CompressedMeasure places its cells around the points it groups; here a point finds its cell by arithmetic, in any
// order, and contributions to the same cell from different places add up.
#pragma once

#include <vector>

#include "transport/compress.hpp"

namespace unshuffle::transport {

class CellGrid {
 public:
  CellGrid() = default;
  /// Cells over `range` as narrow as `rule` requires. Throws InvalidInput if that takes millions of them.
  CellGrid(const Range& range, const CompressionRule& rule);

  /// The Chebyshev points of every cell, ascending.
  [[nodiscard]] const Vector& grid() const { return grid_; }
  /// Width of the cell around every position.
  [[nodiscard]] Vector width_at(const Vector& positions) const;

  /// One column per cell: the series of a function given on the grid.
  [[nodiscard]] Matrix series(const VectorRef& on_grid) const;
  [[nodiscard]] Vector interpolate(const Matrix& series, const VectorRef& points) const;

  /// Chebyshev moments Σ v T_k by cell, one column per column of `values`: (order · cells)×columns. They add up over
  /// sets of points; to_grid() of the sum is the transpose of interpolation.
  void add_moments(const VectorRef& points, const MatrixRef& values, Matrix& moments) const;
  [[nodiscard]] Matrix to_grid(const Matrix& moments) const;

 private:
  /// Equal parts of one stretch of the range that has the same width throughout.
  struct Stretch {
    double low = 0;
    double cells_per_unit = 0;
    Index first_cell = 0, cells = 1;
  };
  struct Place {
    Index cell;
    double at;  // in [-1, 1]
  };
  [[nodiscard]] Place place_of(double position) const;

  Range range_{0, 0};
  double stretches_per_unit_ = 0;
  std::vector<Stretch> stretches_;
  Vector centre_, half_width_;  // of the cells
  Vector grid_;
  Matrix transform_;
};

}  // namespace unshuffle::transport
