// Functions on a line by piecewise Chebyshev series whose pieces depend on a range and a rule alone, so that points
// that are never in one place together can share them.
//
// CompressedMeasure lays its cells around the points it groups; here a point finds its cell by arithmetic, in any
// order, and what is collected for the same cell in different places adds up.
#pragma once

#include <vector>

#include "transport/compress.hpp"

namespace unshuffle::transport {

class CellGrid {
 public:
  CellGrid() = default;
  /// Cells over `range` as narrow as `rule` asks for. Throws InvalidInput when that would be millions of them.
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
  /// Equal parts of one stretch of the range, which asks for the same width all over.
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
