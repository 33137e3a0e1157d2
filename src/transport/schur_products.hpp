// S y = b by conjugate gradients, S = A₂ - ΓᵀA₁⁻¹Γ given by its products with vectors (docs/mathematics.md §2.8).
#pragma once

#include <Eigen/SparseCore>

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// Γ = diag(scale) K.
struct ScaledPlan {
  const Matrix& k;
  const Vector& scale;
  const Vector& row_sums;  ///< Of Γ.
};

/// Preconditioned by the diagonal of S. Products use all of Γ, or its large entries where these are few. Keeps a
/// reference to K.
class SchurProducts {
 public:
  SchurProducts(const ScaledPlan& plan, const Vector& inverse_a1, const Vector& a2);

  /// Replaces b by the solution, to a residual of `share` of b; false when that takes longer than a factor of S.
  [[nodiscard]] bool solve(Vector& b, double share) const;

 private:
  [[nodiscard]] Vector times(const Vector& y) const;
  void keep_large_entries(const Eigen::ArrayXd& floor, double expected);

  const Matrix& k_;
  Vector weight_;  // of a row in KᵀK: scale²/a₁
  Vector a2_, inverse_diagonal_;
  Eigen::SparseMatrix<double> large_;  // of K; empty when all of K is used
  Index most_;                         // products that take as long as a factor
};

}  // namespace unshuffle::transport
