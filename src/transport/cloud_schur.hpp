// S y = b by conjugate gradients for a plan between clouds, preconditioned on points and on boxes (docs/mathematics.md
// §2.9).
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/SparseCholesky>

#include "transport/cloud_kernel.hpp"
#include "transport/conjugate_gradients.hpp"

namespace unshuffle::transport {

/// S = A₂ - Kᵀ diag(weight) K. The preconditioner is the inverse of S's diagonal plus an exact solution of S for
/// functions that are constant on groups of boxes: modes that change slowly from box to box are those that conjugate
/// gradients alone would take long to find. Where ε is so small that few entries of K matter, it is a factor of the S
/// of these entries instead.
class CloudSchur {
 public:
  /// `kernel` must stay as it is.
  CloudSchur(const CloudKernel& kernel, Vector weight, const Vector& a2);

  /// Replaces b by the solution, to a residual of `share` of b; false if that was not reached.
  [[nodiscard]] bool solve(Vector& b, double share) const;

 private:
  [[nodiscard]] bool factor_large_entries();
  void group_boxes();
  void factor_groups();
  [[nodiscard]] Vector times(const Vector& y) const;
  [[nodiscard]] Vector approximately(const Vector& r) const;

  const CloudKernel& kernel_;
  std::vector<char> large_;  // pairs of boxes that conjugate gradients need
  Vector weight_, a2_, inverse_diagonal_;
  std::vector<Index> group_;  // of every column leaf
  Index groups_ = 0;
  Eigen::LLT<Matrix> coarse_;
  std::unique_ptr<Eigen::SimplicialLLT<Eigen::SparseMatrix<double>>>
      nearly_;  // of S from large entries, if these are few
};

}  // namespace unshuffle::transport
