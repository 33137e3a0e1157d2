// The plan of an arbitrary n×m cost, stored in full, or by its rows in several processes.
#pragma once

#include <memory>

#include "transport/side.hpp"
#include "transport/sparse_schur.hpp"
#include "unshuffle/core/team.hpp"

namespace unshuffle::transport {

/// The Kernel of DualSolver for any cost. S is formed from the significant entries only, few when ε is small.
///
/// A team shares the rows of the cost and of the plan. Every process holds whole vectors: those over rows are gathered,
/// those over columns summed. S is then not formed: conjugate gradients use its products, each of which takes one sum
/// over columns.
class DenseKernel {
 public:
  /// With a team of several, `cost` is this process's share of the rows.
  DenseKernel(Matrix cost, Vector row_weights, Vector column_weights, double epsilon, Team* team = nullptr);

  [[nodiscard]] Index rows() const { return row_weights_.size(); }
  [[nodiscard]] Index cols() const { return cost_.cols(); }
  [[nodiscard]] const Vector& row_base() const { return row_base_; }
  [[nodiscard]] const Vector& column_base() const { return column_base_; }

  /// Moves u and v (in units of ε) into the base, so that the remainder is small.
  void rebase(Vector& u, Vector& v);
  void clear_base();
  /// Another ε for the same potentials in the unit of the cost.
  void set_epsilon(double epsilon);

  Vector evaluate(const VectorRef& v);
  void set_rows(const Vector& u);
  [[nodiscard]] Vector column_log_sums(const Vector& u) const;

  /// This process's rows of Γ.
  [[nodiscard]] const Matrix& plan() const { return plan_; }
  [[nodiscard]] const Vector& row_sums() const { return row_sums_; }
  [[nodiscard]] const Vector& column_sums() const { return column_sums_; }
  [[nodiscard]] Matrix apply(const Matrix& q) const;
  [[nodiscard]] Matrix apply_transposed(const Matrix& p) const;

  bool factor(const Vector& inverse_a1, const Vector& a2, double ridge);
  void solve(Matrix& b) const;
  [[nodiscard]] bool factor_lasts() const { return !shared(); }

  /// Row and column sums of e∘Γ, e = -log(Γ/(μ⊗ν)) = C/ε - u - v.
  void entropy_sums(const Vector& u, const Vector& v, Vector& by_row, Vector& by_column) const;
  /// This process's rows of W = Γ(1 - e + P_i + Q_j).
  [[nodiscard]] Matrix weighted_plan(const Vector& u, const Vector& v, const Vector& p, const Vector& q) const;

 private:
  template <class Body>
  void for_row_blocks(Body body) const;
  [[nodiscard]] bool shared() const { return several(team_); }
  /// The part of a vector over all rows that belongs to rows [first, first + count) of this process.
  [[nodiscard]] auto own(const Vector& over_rows, Index first, Index count) const {
    return over_rows.segment(own_.first + first, count).array();
  }
  /// (base - C)/ε of a stretch of column j. All users call this function: at small ε its rounding is large, and
  /// harmless only because it is the same everywhere.
  [[nodiscard]] auto reduced_cost(Index j, Index first, Index count) const {
    return (own(row_base_, first, count) + column_base_[j]) -
           cost_.col(j).segment(first, count).array() * inverse_epsilon_;
  }
  [[nodiscard]] Vector schur_product(const Vector& y) const;
  void subtract_sparse(const Vector& inverse_a1, double cutoff);
  void subtract_dense(const Vector& inverse_a1);

  Matrix cost_;
  Vector row_weights_, column_weights_;
  Team* team_;
  RowShare own_;
  double epsilon_, inverse_epsilon_;
  Vector row_base_, column_base_;  // in units of ε
  Matrix plan_;
  Vector shifts_;
  Vector row_sums_, column_sums_;
  Matrix factor_;
  Vector inverse_a1_, a2_;  // of S where it is not formed
  std::unique_ptr<SparseSchur> nearly_schur_;
};

}  // namespace unshuffle::transport
