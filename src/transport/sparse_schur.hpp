// S = A₂ - ΓᵀA₁⁻¹Γ from the large entries of Γ alone: a preconditioner for the S that is not formed.
//
// S is the Laplacian of a graph between columns, whose edges w_jk = Σ_i Γ_ij Γ_ik / a₁_i are few when ε is small; the
// diagonal alone then misses the weak links that slow conjugate gradients down. With edges omitted, P = A₂ - Γ̃ᵀA₁⁻¹Γ̃
// stays diagonally dominant, hence positive, and P⁻¹S has no eigenvalue above two. When ε is large no entry stands out,
// P is A₂, and S is well conditioned.
#pragma once

#include <Eigen/SparseCholesky>

#include "unshuffle/core/team.hpp"

namespace unshuffle::transport {

class SparseSchur {
 public:
  /// `plan`, `row_sums` and `inverse_a1` of this process's rows; P is the same in all processes.
  SparseSchur(const Matrix& plan, const Vector& row_sums, const Vector& inverse_a1, const Vector& a2, Team* team);

  /// P⁻¹ r.
  [[nodiscard]] Vector solve(const Vector& r) const { return factor_.solve(r); }

 private:
  Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factor_;
};

}  // namespace unshuffle::transport
