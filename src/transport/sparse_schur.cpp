#include "transport/sparse_schur.hpp"

#include "core/of_all.hpp"

namespace unshuffle::transport {
namespace {

using Sparse = Eigen::SparseMatrix<double>;
using Entries = std::vector<Eigen::Triplet<double>>;

/// The share of its row above which an entry counts: as small as possible with no more products than Γ has entries, so
/// that P costs less than a few products with S.
double cutoff_for(const Matrix& plan, const Vector& row_sums, Team* team) {
  for (const double cutoff : {1e-4, 1e-3, 1e-2}) {
    Eigen::ArrayXd kept = Eigen::ArrayXd::Zero(plan.rows());
    for (Index j = 0; j < plan.cols(); ++j) kept += (plan.col(j).array() >= cutoff * row_sums.array()).cast<double>();
    const auto both = sum_of_all(team, Eigen::Vector2d(kept.square().sum(), double(plan.size())));
    if (both[0] <= both[1]) return cutoff;
  }
  return std::numeric_limits<double>::infinity();
}

/// The lower triangle of Γ̃ᵀA₁⁻¹Γ̃ over this process's rows.
Sparse products_of(const Matrix& plan, const Vector& row_sums, const Vector& inverse_a1, double cutoff) {
  Entries large;
  for (Index j = 0; j < plan.cols(); ++j)
    for (Index i = 0; i < plan.rows(); ++i)
      if (plan(i, j) >= cutoff * row_sums[i] && plan(i, j) > 0)
        large.emplace_back(static_cast<int>(i), static_cast<int>(j), std::sqrt(inverse_a1[i]) * plan(i, j));
  Sparse scaled(plan.rows(), plan.cols());
  scaled.setFromTriplets(large.begin(), large.end());
  const Sparse products = scaled.transpose() * scaled;
  return products.triangularView<Eigen::Lower>();
}

/// As columns of (row, column, value).
Matrix listed(const Sparse& matrix) {
  Matrix list(3, matrix.nonZeros());
  Index at = 0;
  for (Index j = 0; j < matrix.outerSize(); ++j)
    for (Sparse::InnerIterator entry(matrix, j); entry; ++entry)
      list.col(at++) << double(entry.row()), double(entry.col()), entry.value();
  return list;
}

}  // namespace

SparseSchur::SparseSchur(const Matrix& plan, const Vector& row_sums, const Vector& inverse_a1, const Vector& a2,
                         Team* team) {
  const double cutoff = cutoff_for(plan, row_sums, team);
  const Matrix all = rows_of_all(team, Matrix(listed(products_of(plan, row_sums, inverse_a1, cutoff)).transpose()));
  Entries entries;
  for (Index k = 0; k < all.rows(); ++k)
    entries.emplace_back(static_cast<int>(all(k, 0)), static_cast<int>(all(k, 1)), -all(k, 2));
  constexpr double ridge = 1e-10;  // costs a preconditioner nothing and keeps the factor safe from rounding
  for (Index j = 0; j < a2.size(); ++j)
    entries.emplace_back(static_cast<int>(j), static_cast<int>(j), a2[j] * (1 + ridge));
  Sparse p(a2.size(), a2.size());
  p.setFromTriplets(entries.begin(), entries.end());
  factor_.compute(p);
}

}  // namespace unshuffle::transport
