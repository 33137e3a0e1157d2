#include "transport/cloud_schur.hpp"

#include <algorithm>
#include <array>

namespace unshuffle::transport {
namespace {

constexpr Index most_groups = 256, fewest_groups = 8;
/// Where more of all pairs matter, conjugate gradients converge fast without groups.
constexpr double few_pairs = 0.3;
constexpr Index most_products = 2000;
/// A factor of S from large entries pays while there are no more than this in a row, and not many more in S.
constexpr Index few_in_row = 16, few_in_column_of_s = 100;
/// Share of a row below which conjugate gradients leave entries out: Newton's steps do not need them, and the adjoint
/// is refined with all of the plan.
constexpr double least_share = 1e-8;

}  // namespace

CloudSchur::CloudSchur(const CloudKernel& kernel, Vector weight, const Vector& a2)
    : kernel_(kernel),
      large_(kernel.pairs_above(least_share)),
      weight_(std::move(weight)),
      a2_((a2.array() > 0).select(a2.array(), 1.0)) {
  const Vector diagonal = a2_ - kernel_.squares_transposed_times(weight_);
  // S is singular; where a column has a partner of its own, its diagonal is rounding.
  inverse_diagonal_ = diagonal.cwiseMax(1e-12 * a2_).cwiseInverse();
  if (factor_large_entries()) return;
  const double all = static_cast<double>(kernel_.rows()) * static_cast<double>(kernel_.cols());
  if (kernel_.pairs().entries < few_pairs * all) group_boxes();
  if (groups_ >= fewest_groups) factor_groups();
}

/// S is the Laplacian of a graph between columns whose edges are the entries of KᵀK, plus what the sums demand beyond
/// exact ones: assembled in this form it keeps its digits where nearly every column has a partner of its own.
bool CloudSchur::factor_large_entries() {
  std::vector<Eigen::Triplet<double>> large;
  for (const double share : {1e-13, 1e-9, 1e-5}) {
    large = kernel_.large_entries(share, few_in_row);
    if (!large.empty()) break;
  }
  if (large.empty()) return false;
  using Sparse = Eigen::SparseMatrix<double>;
  Sparse k(kernel_.rows(), kernel_.cols());
  k.setFromTriplets(large.begin(), large.end());
  const Sparse scaled = weight_.cwiseSqrt().asDiagonal() * k;
  Sparse s = -(scaled.transpose() * scaled).eval();
  if (s.nonZeros() > few_in_column_of_s * s.cols()) return false;
  const Vector beyond = a2_ + s * Vector::Ones(s.cols());
  constexpr double ridge = 1e-12;
  for (Index j = 0; j < s.cols(); ++j) {
    double edges = 0;
    for (Sparse::InnerIterator entry(s, j); entry; ++entry)
      if (entry.row() != j) edges -= entry.value();
    s.coeffRef(j, j) = edges + std::max(beyond[j], ridge * a2_[j]);
  }
  nearly_ = std::make_unique<Eigen::SimplicialLLT<Sparse>>(s);
  if (nearly_->info() == Eigen::Success) return true;
  nearly_.reset();
  return false;
}

/// Consecutive leaves are neighbours: groups are the boxes of a level of the tree.
void CloudSchur::group_boxes() {
  const auto leaves = static_cast<Index>(kernel_.column_cloud().leaves().size());
  Index together = 1;
  while ((leaves + together - 1) / together > most_groups) together *= 2;
  for (Index b = 0; b < leaves; ++b) group_.push_back(b / together);
  groups_ = group_.back() + 1;
}

/// S between groups; row boxes are shared out to a fixed number of partial sums.
void CloudSchur::factor_groups() {
  constexpr Index parts = 8;
  const auto leaves = static_cast<Index>(kernel_.row_cloud().leaves().size());
  std::array<Matrix, parts> partial;
#pragma omp parallel for schedule(dynamic, 1) if (kernel_.pairs().entries > 50000)
  for (Index part = 0; part < parts; ++part) {
    Matrix& sum = partial[at(part)];
    sum.setZero(groups_, groups_);
    Matrix sums;
    for (Index a = part * leaves / parts; a < (part + 1) * leaves / parts; ++a) {
      const CloudBox& box = kernel_.row_cloud().leaf(a);
      sums.setZero(box.count, groups_);
      kernel_.grouped_rows(a, group_, sums);
      std::vector<Index> present;
      for (Index g = 0; g < groups_; ++g)
        if (!sums.col(g).isZero(0)) present.push_back(g);
      const Matrix packed = weight_.segment(box.first, box.count).cwiseSqrt().asDiagonal() * sums(Eigen::all, present);
      const Matrix gram = packed.transpose() * packed;
      sum(present, present) += gram;
    }
  }
  Matrix coarse = Matrix::Zero(groups_, groups_);
  for (const Matrix& sum : partial) coarse -= sum;
  const PointCloud& columns = kernel_.column_cloud();
  Vector mass = Vector::Zero(groups_);
  for (std::size_t b = 0; b < group_.size(); ++b) {
    const CloudBox& box = columns.leaf(static_cast<Index>(b));
    mass[group_[b]] += a2_.segment(box.first, box.count).sum();
  }
  constexpr double ridge = 1e-10;  // constants may be null vectors
  coarse.diagonal() += (1 + ridge) * mass;
  coarse_.compute(coarse);
  if (coarse_.info() != Eigen::Success) groups_ = 0;
}

Vector CloudSchur::times(const Vector& y) const { return a2_.cwiseProduct(y) - kernel_.gram_times(weight_, y, large_); }

Vector CloudSchur::approximately(const Vector& r) const {
  if (nearly_) return nearly_->solve(r);
  Vector y = inverse_diagonal_.cwiseProduct(r);
  if (groups_ < fewest_groups) return y;
  const PointCloud& columns = kernel_.column_cloud();
  Vector by_group = Vector::Zero(groups_);
  for (std::size_t b = 0; b < group_.size(); ++b) {
    const CloudBox& box = columns.leaf(static_cast<Index>(b));
    by_group[group_[b]] += r.segment(box.first, box.count).sum();
  }
  const Vector solved = coarse_.solve(by_group);
  for (std::size_t b = 0; b < group_.size(); ++b) {
    const CloudBox& box = columns.leaf(static_cast<Index>(b));
    y.segment(box.first, box.count).array() += solved[group_[b]];
  }
  return y;
}

bool CloudSchur::solve(Vector& b, double share) const {
  Iterated found = conjugate_gradients([this](const Vector& y) { return times(y); },
                                       [this](const Vector& r) { return approximately(r); }, b,
                                       {.share = share, .most = most_products});
  b = std::move(found.x);
  return found.reached;
}

}  // namespace unshuffle::transport
