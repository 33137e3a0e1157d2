// The plan of a cost that is 1 but for few pairs, in time and memory proportional to their number.
#pragma once

#include <Eigen/SparseCore>
#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// A row and a column whose cost is 1 - closeness.
struct ClosePair {
  Index row;
  Index column;
  double closeness;  ///< Above 0, at most 1.
};

/// The Kernel of DualSolver for such a cost and uniform weights:
///   exp(-C/ε) = exp(-1/ε) (11ᵀ + E),   E_ij = exp(closeness/ε) - 1 for close pairs, 0 for all others.
/// It has no factor; balls, which need one, converge slowly.
class SaturatedKernel {
 public:
  /// E overflows below.
  static constexpr double least_epsilon = 1.0 / 300;

  SaturatedKernel(Index rows, Index columns, const std::vector<ClosePair>& close, double epsilon);

  [[nodiscard]] Index rows() const { return excess_.rows(); }
  [[nodiscard]] Index cols() const { return excess_.cols(); }
  [[nodiscard]] const Vector& row_base() const { return row_base_; }
  [[nodiscard]] const Vector& column_base() const { return column_base_; }

  Vector evaluate(const VectorRef& v);
  void set_rows(const Vector& u);
  /// `u` is that of set_rows().
  [[nodiscard]] Vector column_log_sums(const Vector& u) const;

  [[nodiscard]] const Vector& row_sums() const { return row_sums_; }
  [[nodiscard]] const Vector& column_sums() const { return column_sums_; }
  [[nodiscard]] Matrix apply(const Matrix& q) const;
  [[nodiscard]] Matrix apply_transposed(const Matrix& p) const;
  /// Γ at a close pair.
  [[nodiscard]] double mass(const ClosePair& pair) const;

  static bool factor(const Vector&, const Vector&, double) { return false; }
  static void solve(const Matrix&) {}
  [[nodiscard]] static bool factor_lasts() { return false; }
  bool prepare_products(const Vector& inverse_a1, const Vector& a2);
  [[nodiscard]] bool iterate(Vector& b, double share) const;

 private:
  double inverse_epsilon_;
  Eigen::SparseMatrix<double, Eigen::RowMajor> excess_;  // E
  Vector row_base_, column_base_;                        // zero
  double peak_ = 0;                                      // the largest v
  Vector column_factor_;                                 // ν exp(v - peak)
  Vector row_products_;                                  // (11ᵀ + E) column_factor
  Vector row_factor_;                                    // Γ = diag(row_factor) (11ᵀ + E) diag(column_factor)
  Vector column_products_;                               // (11ᵀ + E)ᵀ row_factor
  Vector row_sums_, column_sums_, inverse_a1_, a2_;
};

}  // namespace unshuffle::transport
