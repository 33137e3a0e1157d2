// The plan between two clouds of points under squared distances, never formed (docs/mathematics.md §2.9).
#pragma once

#include <memory>
#include <vector>

#include <Eigen/SparseCore>

#include "transport/box_pairs.hpp"
#include "transport/cloud_tiles.hpp"

namespace unshuffle::transport {

class CloudSchur;

/// The Kernel of DualSolver for C_ij = |t_i - s_j|², in the scaling form of DenseKernel,
///   K_ij = ν_j exp(v°_j - C_ij/ε - shift_i),      Γ = diag(row factor) K diag(column factor),
/// over the pairs of boxes it was given. K is computed tile by tile whenever it is needed, or kept where it has few
/// entries for the number of points, so memory is linear in that number. Vectors are in box order.
class CloudKernel {
 public:
  /// The clouds must outlive the kernel.
  CloudKernel(const PointCloud& rows, const PointCloud& columns, double epsilon);
  ~CloudKernel();

  [[nodiscard]] Index rows() const { return rows_.size(); }
  [[nodiscard]] Index cols() const { return columns_.size(); }
  [[nodiscard]] double epsilon() const { return epsilon_; }
  [[nodiscard]] const Vector& row_base() const { return row_base_; }
  [[nodiscard]] const Vector& column_base() const { return column_base_; }

  /// Potentials near the solution, in units of ε, and the pairs of boxes to sum over.
  void set_base(Vector u, Vector v);
  void set_pairs(BoxPairs pairs);
  [[nodiscard]] const BoxPairs& pairs() const { return pairs_; }

  Vector evaluate(const VectorRef& v);
  void set_rows(const Vector& u);
  /// `u` is that of set_rows().
  [[nodiscard]] Vector column_log_sums(const Vector& u) const;

  [[nodiscard]] const Vector& row_sums() const { return row_sums_; }
  [[nodiscard]] const Vector& column_sums() const { return column_sums_; }
  [[nodiscard]] Matrix apply(const Matrix& q) const;
  [[nodiscard]] Matrix apply_transposed(const Matrix& p) const;

  /// S is never factored: solve() uses conjugate gradients to full accuracy, iterate() to a residual of `share`.
  bool factor(const Vector& inverse_a1, const Vector& a2, double ridge);
  void solve(Matrix& b) const;
  [[nodiscard]] bool factor_lasts() const { return false; }
  bool prepare_products(const Vector& inverse_a1, const Vector& a2);
  [[nodiscard]] bool iterate(Vector& b, double share) const;

  /// Σ_j Γ_ij(e_ij - q_j) and Σ_i Γ_ij(e_ij - p_i), e = -log(Γ/(μ⊗ν)) = C/ε - u - v; u and v relative to the base.
  [[nodiscard]] Vector row_entropy_sums(const Vector& u, const Vector& v, const Vector& q) const;
  [[nodiscard]] Vector column_entropy_sums(const Vector& u, const Vector& v, const Vector& p) const;

  /// W_ij = Γ_ij(constant + slope·log(Γ_ij/(μ_iν_j)) + P_i + Q_j).
  struct WeightedPlan {
    const Vector &u, &v;  ///< Relative to the base.
    double constant = 1, slope = 0;
    const Vector &p, &q;
  };
  /// d/dt_i and d/ds_j of Σ W_ij C_ij at fixed W.
  [[nodiscard]] Matrix row_forces(const WeightedPlan& w) const;
  [[nodiscard]] Matrix column_forces(const WeightedPlan& w) const;

  /// Γ of the `most` largest entries of every row and every column, in box order by row.
  struct Entry {
    Index row, column;
    double mass;
  };
  [[nodiscard]] std::vector<Entry> strongest(const Vector& u, const Vector& v, Index most) const;

  // For CloudSchur, once normalise() has moved the column factor into K.
  [[nodiscard]] const PointCloud& row_cloud() const { return rows_; }
  [[nodiscard]] const PointCloud& column_cloud() const { return columns_; }
  [[nodiscard]] Vector times(const Vector& x) const;                     ///< K x.
  [[nodiscard]] Vector transposed_times(const Vector& p) const;          ///< Kᵀp.
  [[nodiscard]] Vector squares_transposed_times(const Vector& p) const;  ///< (K∘K)ᵀp.
  /// Whether a pair of boxes, by its number in the list by row box, holds some entry above `share` of its row or
  /// column.
  [[nodiscard]] std::vector<char> pairs_above(double share) const;
  /// K's entries of at least `share`; none when there are more than `a_row` in the mean of the first rows or of all.
  [[nodiscard]] std::vector<Eigen::Triplet<double>> large_entries(double share, Index a_row) const;
  /// Kᵀ diag(weight) K x over some of the pairs of boxes.
  [[nodiscard]] Vector gram_times(const Vector& weight, const Vector& x, const std::vector<char>& of_pairs) const;
  /// K's rows of a row box summed over groups of column boxes; `group` has one number a column leaf.
  void grouped_rows(Index row_leaf, const std::vector<Index>& group, Matrix& sums) const;

 private:
  struct Densities;
  [[nodiscard]] RowPanel panel(Index row_leaf) const;
  /// K of a pair of boxes, by its number in the list by row box: the stored one, or computed into `room`.
  [[nodiscard]] const double* entries(const RowPanel& panel, Index pair, Index column_leaf, Tile& room) const;
  template <bool squared>
  [[nodiscard]] Vector column_products(const Vector& p) const;
  void compute(const VectorRef& v);
  void shift_by_largest();
  void keep_few();
  void gram_of_rows(Index row_leaf, const Vector& weight, const Vector& x, const std::vector<char>& of_pairs,
                    TileStore& room, Eigen::Ref<Vector> sums) const;
  void normalise();
  void log_sums_of(const std::vector<char>& leaves, const Vector& u, Vector& log_sums) const;
  [[nodiscard]] bool worth_threads() const { return pairs_.entries > 50000; }

  const PointCloud &rows_, &columns_;
  double epsilon_, inverse_epsilon_;
  Vector row_base_, column_base_;
  BoxPairs pairs_;
  bool current_ = false;  // whether K belongs to the base and the pairs
  bool normal_ = false;   // whether the column factor is one
  Vector reference_, v_;  // v°, and v of the last evaluate()
  Vector shifts_, row_products_, row_guess_, row_factor_, column_factor_;
  Vector row_sums_, column_sums_;
  TileStore store_;
  std::vector<std::size_t> place_in_store_;  // of every pair; empty: nothing is stored
  std::unique_ptr<CloudSchur> schur_;
};

}  // namespace unshuffle::transport
