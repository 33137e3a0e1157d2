// The plan of an arbitrary n×m cost, stored in full.
#pragma once

#include "transport/side.hpp"

namespace unshuffle::transport {

/// The Kernel of DualSolver for any cost. S is formed from the entries that matter: few of them when ε is small.
class DenseKernel {
 public:
  /// `cost` must outlive the kernel.
  DenseKernel(const MatrixRef& cost, Vector row_weights, Vector column_weights, double epsilon);

  [[nodiscard]] Index rows() const { return cost_.rows(); }
  [[nodiscard]] Index cols() const { return cost_.cols(); }
  [[nodiscard]] const Vector& row_base() const { return row_base_; }
  [[nodiscard]] const Vector& column_base() const { return column_base_; }

  /// Moves u and v (in units of ε) into the base, so that what is left of them is small.
  void rebase(Vector& u, Vector& v);
  void clear_base();
  /// Another ε for the same potentials in the unit of the cost.
  void set_epsilon(double epsilon);

  Vector evaluate(const VectorRef& v);
  void set_rows(const VectorRef& u);
  [[nodiscard]] Vector column_log_sums(const VectorRef& u) const;

  [[nodiscard]] const Matrix& plan() const { return plan_; }
  [[nodiscard]] const Vector& row_sums() const { return row_sums_; }
  [[nodiscard]] const Vector& column_sums() const { return column_sums_; }
  [[nodiscard]] Matrix apply(const Matrix& q) const { return plan_ * q; }
  [[nodiscard]] Matrix apply_transposed(const Matrix& p) const { return plan_.transpose() * p; }

  bool factor(const Vector& inverse_a1, const Vector& a2, double ridge);
  void solve(Matrix& b) const;

  /// Row and column sums of e∘Γ, e = -log(Γ/(μ⊗ν)) = C/ε - u - v.
  void entropy_sums(const Vector& u, const Vector& v, Vector& by_row, Vector& by_column) const;
  /// W = Γ(1 - e + P_i + Q_j).
  [[nodiscard]] Matrix weighted_plan(const Vector& u, const Vector& v, const Vector& p, const Vector& q) const;

 private:
  template <class Body>
  void for_row_blocks(Body body) const;
  /// (base - C)/ε of a stretch of column j. Everything that needs it takes it from here: at small ε its rounding is
  /// large, and harmless only as long as it is the same everywhere.
  [[nodiscard]] auto reduced_cost(Index j, Index first, Index count) const {
    return (row_base_.segment(first, count).array() + column_base_[j]) -
           cost_.col(j).segment(first, count).array() * inverse_epsilon_;
  }
  void subtract_sparse(const Vector& inverse_a1, double cutoff);
  void subtract_dense(const Vector& inverse_a1);

  MatrixRef cost_;
  Vector row_weights_, column_weights_;
  double epsilon_, inverse_epsilon_;
  Vector row_base_, column_base_;  // in units of ε
  Matrix plan_;
  Vector shifts_;
  Vector row_sums_, column_sums_;
  Matrix factor_;
};

}  // namespace unshuffle::transport
