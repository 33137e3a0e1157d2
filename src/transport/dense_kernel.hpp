// The plan of an arbitrary n×m cost, stored in full, or by its rows in several processes.
#pragma once

#include <memory>
#include <vector>

#include "transport/schur_products.hpp"
#include "transport/side.hpp"
#include "transport/sparse_schur.hpp"
#include "unshuffle/core/team.hpp"

namespace unshuffle::transport {

/// The Kernel of DualSolver for any cost, in scaling form (docs/mathematics.md §2.8): with a reference v° of the column
/// potentials and a shift per row,
///   K_ij = ν_j exp(v°_j - C_ij/ε - shift_i),      Γ = diag(row factor) K diag(column factor),
///   row factor = μ exp(u + shift),                column factor = exp(v - v°),
/// so other potentials near v° take two products with K and no exponentials. K is computed anew when v has moved too
/// far from v°, when ε changes and when the base does.
///
/// S is formed from the significant entries only, few when ε is small; or it is not formed, see iterate().
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
  /// `u` is that of set_rows().
  [[nodiscard]] Vector column_log_sums(const Vector& u) const;

  /// Makes K the plan itself, for plan() and all below it.
  void settle();
  /// This process's rows of Γ.
  [[nodiscard]] const Matrix& plan() const { return entries_; }
  [[nodiscard]] const Vector& row_sums() const { return row_sums_; }
  [[nodiscard]] const Vector& column_sums() const { return column_sums_; }
  [[nodiscard]] Matrix apply(const Matrix& q) const;
  [[nodiscard]] Matrix apply_transposed(const Matrix& p) const;

  bool factor(const Vector& inverse_a1, const Vector& a2, double ridge);
  void solve(Matrix& b) const;
  [[nodiscard]] bool factor_lasts() const { return !shared(); }

  /// Prepares iterate(); false where only a factor will do: a team has its own conjugate gradients in solve().
  bool prepare_products(const Vector& inverse_a1, const Vector& a2);
  /// Replaces b by S⁻¹b, to a residual of `share` of b; false when a factor is faster.
  [[nodiscard]] bool iterate(Vector& b, double share) const { return products_->solve(b, share); }

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
  void compute(const VectorRef& v);
  void fill(Index first, Index count);
  void scale_entries(const Eigen::ArrayXd& by_row, const Eigen::ArrayXd& by_column);
  void normalise();
  void log_sums_of(const std::vector<Index>& columns, const Vector& u, Vector& log_sums) const;
  [[nodiscard]] Vector schur_product(const Vector& y) const;
  void subtract_sparse(const Vector& weight, const Vector& floor);
  void subtract_dense(const Vector& weight);

  Matrix cost_;
  Vector row_weights_, column_weights_;
  Team* team_;
  RowShare own_;
  double epsilon_, inverse_epsilon_;
  Vector row_base_, column_base_;  // in units of ε
  Matrix entries_;                 // K; Γ itself once settled
  bool current_ = false;           // whether K belongs to ε and the base
  bool normal_ = false;            // whether the column factor is one
  Vector reference_, v_;           // v°, and v of the last evaluate()
  Vector shifts_, row_products_;   // of this process's rows, as the next two; row_products = K · column factor
  Vector row_guess_, row_factor_;  // the next shifts to try
  Vector column_factor_;
  Vector row_sums_, column_sums_;
  Matrix factor_;
  Vector schur_weight_, a2_;  // of S = A₂ - Kᵀ diag(weight) K where a team does not form it
  std::unique_ptr<SparseSchur> nearly_schur_;
  std::unique_ptr<SchurProducts> products_;
};

}  // namespace unshuffle::transport
