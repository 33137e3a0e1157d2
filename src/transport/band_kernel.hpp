// The plan between two measures on a line, stored as one contiguous window of columns per row.
#pragma once

#include <utility>
#include <vector>

#include "transport/line.hpp"

namespace unshuffle::transport {

/// The Kernel of DualSolver for the cost (t - s)². Nothing of size rows × columns is formed; S is banded.
class BandKernel {
 public:
  BandKernel(const LineMeasure& rows, const LineMeasure& columns, double epsilon);

  [[nodiscard]] Index rows() const { return rows_.size(); }
  [[nodiscard]] Index cols() const { return columns_.size(); }
  [[nodiscard]] const Vector& row_base() const { return row_base_; }
  [[nodiscard]] const Vector& column_base() const { return column_base_; }

  /// Moves potentials (in units of ε) into the base, so that the remainder is small and keeps its digits.
  void set_base(const VectorRef& u, const VectorRef& v) {
    row_base_ = u;
    column_base_ = v;
  }

  Vector evaluate(const VectorRef& v);
  void set_rows(const VectorRef& u);
  [[nodiscard]] Vector column_log_sums(const VectorRef& u) const;

  [[nodiscard]] const Vector& row_sums() const { return row_sums_; }
  [[nodiscard]] const Vector& column_sums() const { return column_sums_; }
  [[nodiscard]] Matrix apply(const Matrix& q) const;
  [[nodiscard]] Matrix apply_transposed(const Matrix& p) const;

  bool factor(const Vector& inverse_a1, const Vector& a2, double ridge);
  void solve(Matrix& b) const;
  [[nodiscard]] static bool factor_lasts() { return true; }
  /// A factor of a band is cheap: there is nothing to iterate for.
  static bool prepare_products(const Vector& /*inverse_a1*/, const Vector& /*a2*/) { return false; }
  [[nodiscard]] static bool iterate(Vector& /*b*/, double /*share*/) { return false; }

  /// Σ Γ d and Σ Γ d² over the partners of every row and of every column, d = t - s.
  struct DistanceSums {
    Vector row_first, row_second, column_first, column_second;
  };
  [[nodiscard]] DistanceSums distance_sums() const;
  /// Columns [first, last) of row i, and the entries of Γ there.
  [[nodiscard]] std::pair<Index, Index> window(Index i) const { return {begin(i), begin(i) + length(i)}; }
  [[nodiscard]] auto row(Index i) const { return plan_.segment(offset(i), length(i)).array(); }

  /// Row and column sums of e∘Γ, e = -log(Γ/(μ⊗ν)) = C/ε - u - v.
  void entropy_sums(const Vector& u, const Vector& v, Vector& by_row, Vector& by_column) const;

 private:
  [[nodiscard]] Index begin(Index i) const { return windows_.begin[static_cast<std::size_t>(i)]; }
  [[nodiscard]] Index length(Index i) const { return windows_.end[static_cast<std::size_t>(i)] - begin(i); }
  [[nodiscard]] auto row(Index i) { return plan_.segment(offset(i), length(i)).array(); }
  [[nodiscard]] Index offset(Index i) const { return offsets_[static_cast<std::size_t>(i)]; }
  /// v_j - (C_ij - base)/ε over the window of row i.
  [[nodiscard]] auto exponents(const VectorRef& v, Index i) const {
    const Index first = begin(i), count = length(i);
    return ((row_base_[i] + column_base_.segment(first, count).array()) -
            (rows_.position[i] - columns_.position.segment(first, count).array()).square() / epsilon_) +
           v.segment(first, count).array();
  }

  LineMeasure rows_, columns_;
  double epsilon_;
  Vector row_base_, column_base_;  // in units of ε
  Windows windows_;
  std::vector<Index> offsets_;
  // Eigen's own aligned storage throughout, so that sums are taken in the same order wherever it is.
  Vector plan_;    // Γ, row windows one after another
  Vector shifts_;  // what evaluate() subtracted from the exponents of each row
  Vector row_sums_, column_sums_;
  Eigen::ArrayXXd block_;  // a few rows side by side, padded to one window
  Matrix factor_;          // LAPACK lower band storage of chol(S)
};

}  // namespace unshuffle::transport
