#include "transport/cell_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "transport/chebyshev.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::transport {

CellGrid::CellGrid(const Range& range, const CompressionRule& rule)
    : range_(range), transform_(chebyshev_coefficients(rule.grid_order)) {
  constexpr double most_cells = 4e6;
  const double wanted = range.length() > 0 ? std::max(1.0, std::ceil(range.length() / rule.cell_width)) : 1;
  if (!(wanted <= most_cells))
    throw InvalidInput(
        fmt::format("epsilon is too small for tables in pieces: points {:.3g} apart would need {:.3g} "
                    "cells of its square root's width, {:.3g} are possible",
                    range.length(), wanted, most_cells));
  const auto count = static_cast<Index>(wanted);
  const double length = range.length() / wanted;
  stretches_per_unit_ = length > 0 ? 1 / length : 0;
  std::vector<double> centre, half_width;
  for (Index k = 0; k < count; ++k) {
    Stretch stretch;
    stretch.low = range.low + static_cast<double>(k) * length;
    const double widest = rule.widest_cell(stretch.low, stretch.low + length);
    stretch.first_cell = static_cast<Index>(centre.size());
    stretch.cells = length > 0 ? std::max<Index>(1, static_cast<Index>(std::ceil(length / widest))) : 1;
    const double width = length / static_cast<double>(stretch.cells);
    stretch.cells_per_unit = width > 0 ? 1 / width : 0;
    for (Index c = 0; c < stretch.cells; ++c) {
      centre.push_back(stretch.low + (static_cast<double>(c) + 0.5) * width);
      half_width.push_back(0.5 * width);
    }
    stretches_.push_back(stretch);
  }
  centre_ = Eigen::Map<const Vector>(centre.data(), static_cast<Index>(centre.size()));
  half_width_ = Eigen::Map<const Vector>(half_width.data(), static_cast<Index>(half_width.size()));
  const Vector unit = chebyshev_points(rule.grid_order);
  grid_.resize(unit.size() * centre_.size());
  for (Index c = 0; c < centre_.size(); ++c)
    grid_.segment(c * unit.size(), unit.size()) = centre_[c] + half_width_[c] * unit.array();
}

CellGrid::Place CellGrid::place_of(double position) const {
  const auto last = static_cast<Index>(stretches_.size()) - 1;
  const auto k = std::clamp<Index>(static_cast<Index>((position - range_.low) * stretches_per_unit_), 0, last);
  const Stretch& stretch = stretches_[static_cast<std::size_t>(k)];
  const auto part =
      std::clamp<Index>(static_cast<Index>((position - stretch.low) * stretch.cells_per_unit), 0, stretch.cells - 1);
  const Index cell = stretch.first_cell + part;
  return {cell, half_width_[cell] > 0 ? (position - centre_[cell]) / half_width_[cell] : 0};
}

Vector CellGrid::width_at(const Vector& positions) const {
  return positions.unaryExpr([this](double x) { return 2 * half_width_[place_of(x).cell]; });
}

Matrix CellGrid::series(const VectorRef& on_grid) const {
  return transform_ * Eigen::Map<const Matrix>(on_grid.data(), transform_.rows(), centre_.size());
}

Vector CellGrid::interpolate(const Matrix& series, const VectorRef& points) const {
  Vector result(points.size());
  for (Index i = 0; i < points.size(); ++i) {
    const auto [cell, y] = place_of(points[i]);
    const double* c = series.col(cell).data();
    double b1 = 0, b2 = 0;
    for (Index degree = series.rows() - 1; degree > 0; --degree) {  // Clenshaw's recurrence
      const double b0 = c[degree] + 2 * y * b1 - b2;
      b2 = b1;
      b1 = b0;
    }
    result[i] = c[0] + y * b1 - b2;
  }
  return result;
}

void CellGrid::add_moments(const VectorRef& points, const MatrixRef& values, Matrix& moments) const {
  const Index order = transform_.rows();
  Vector polynomial(order);
  for (Index i = 0; i < points.size(); ++i) {
    const auto [cell, y] = place_of(points[i]);
    polynomial[0] = 1;
    if (order > 1) polynomial[1] = y;
    for (Index degree = 2; degree < order; ++degree)
      polynomial[degree] = 2 * y * polynomial[degree - 1] - polynomial[degree - 2];
    for (Index k = 0; k < values.cols(); ++k) moments.col(k).segment(cell * order, order) += values(i, k) * polynomial;
  }
}

Matrix CellGrid::to_grid(const Matrix& moments) const {
  Matrix result(moments.rows(), moments.cols());
  for (Index k = 0; k < moments.cols(); ++k) {
    Eigen::Map<Matrix>(result.col(k).data(), transform_.rows(), centre_.size()).noalias() =
        transform_.transpose() * Eigen::Map<const Matrix>(moments.col(k).data(), transform_.rows(), centre_.size());
  }
  return result;
}

}  // namespace unshuffle::transport
