#include "transport/dense_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/lapack.hpp"
#include "core/of_all.hpp"
#include "transport/conjugate_gradients.hpp"

namespace unshuffle::transport {
namespace {

/// Rows handled together: a block of columns of this height stays in the cache. Fixed, so that results do not depend on
/// the number of threads.
constexpr Index block_rows = 128;
constexpr Index tile = 192;

}  // namespace

DenseKernel::DenseKernel(Matrix cost, Vector row_weights, Vector column_weights, double epsilon, Team* team)
    : cost_(std::move(cost)),
      row_weights_(std::move(row_weights)),
      column_weights_(std::move(column_weights)),
      team_(team),
      own_(several(team) ? team->share_of(row_weights_.size()) : RowShare{0, row_weights_.size()}),
      epsilon_(epsilon),
      inverse_epsilon_(1 / epsilon),
      row_base_(Vector::Zero(row_weights_.size())),
      column_base_(Vector::Zero(cost_.cols())),
      plan_(cost_.rows(), cost_.cols()),
      shifts_(cost_.rows()) {}

void DenseKernel::rebase(Vector& u, Vector& v) {
  row_base_ += u;
  column_base_ += v;
  u.setZero();
  v.setZero();
}

void DenseKernel::clear_base() {
  row_base_.setZero();
  column_base_.setZero();
}

void DenseKernel::set_epsilon(double epsilon) {
  row_base_ *= epsilon_ / epsilon;
  column_base_ *= epsilon_ / epsilon;
  epsilon_ = epsilon;
  inverse_epsilon_ = 1 / epsilon;
}

/// body(first row, number of rows) for all blocks of this process's rows, in parallel when there is enough to do.
template <class Body>
void DenseKernel::for_row_blocks(Body body) const {
  const Index blocks = (own_.count + block_rows - 1) / block_rows;
#pragma omp parallel for schedule(static) if (cost_.size() > 50000)
  for (Index b = 0; b < blocks; ++b) body(b * block_rows, std::min(block_rows, own_.count - b * block_rows));
}

Vector DenseKernel::evaluate(const VectorRef& v) {
  Vector log_sums(own_.count);
  for_row_blocks([&](Index first, Index count) {
    Eigen::ArrayXd largest = Eigen::ArrayXd::Constant(count, -std::numeric_limits<double>::infinity());
    for (Index j = 0; j < cols(); ++j) {
      auto entry = plan_.col(j).segment(first, count).array();
      entry = reduced_cost(j, first, count) + v[j];
      if (column_weights_[j] > 0) largest = largest.max(entry);
    }
    Eigen::ArrayXd sum = Eigen::ArrayXd::Zero(count);
    for (Index j = 0; j < cols(); ++j) {
      auto entry = plan_.col(j).segment(first, count).array();
      entry = column_weights_[j] > 0 ? Eigen::ArrayXd((entry - largest).exp() * column_weights_[j])
                                     : Eigen::ArrayXd::Zero(count);
      sum += entry;
    }
    shifts_.segment(first, count) = largest;
    log_sums.segment(first, count) = largest + sum.log();
  });
  return rows_of_all(team_, std::move(log_sums));
}

void DenseKernel::set_rows(const Vector& u) {
  Vector row_sums = Vector::Zero(own_.count);
  const Index blocks = (own_.count + block_rows - 1) / block_rows;
  Matrix partial = Matrix::Zero(cols(), blocks);
  for_row_blocks([&](Index first, Index count) {
    const Eigen::ArrayXd scale =
        own(row_weights_, first, count) * (own(u, first, count) + shifts_.segment(first, count).array()).exp();
    for (Index j = 0; j < cols(); ++j) {
      auto entry = plan_.col(j).segment(first, count).array();
      entry *= scale;
      row_sums.segment(first, count).array() += entry;
      partial(j, first / block_rows) = entry.sum();
    }
  });
  row_sums_ = rows_of_all(team_, std::move(row_sums));
  column_sums_ = sum_of_all(team_, Vector(partial.rowwise().sum()));
}

Vector DenseKernel::column_log_sums(const Vector& u) const {
  const double none = -std::numeric_limits<double>::infinity();
  const auto weights = own(row_weights_, 0, own_.count);
  Eigen::ArrayXd largest(cols()), sums(cols());
#pragma omp parallel for schedule(static) if (cost_.size() > 50000)
  for (Index j = 0; j < cols(); ++j) {
    const Eigen::ArrayXd entry = (weights > 0).select(reduced_cost(j, 0, own_.count) + own(u, 0, own_.count), none);
    largest[j] = entry.maxCoeff();
    sums[j] = largest[j] > none ? ((entry - largest[j]).exp() * weights).sum() : 0;
  }
  const Eigen::ArrayXd largest_here = largest;
  largest = largest_of_all(team_, std::move(largest));
  if (shared()) sums = sum_of_all(team_, Eigen::ArrayXd(sums * (largest_here - largest).exp()));
  return largest + sums.log();
}

Matrix DenseKernel::apply(const Matrix& q) const { return rows_of_all(team_, Matrix(plan_ * q)); }

Matrix DenseKernel::apply_transposed(const Matrix& p) const {
  return sum_of_all(team_, Matrix(plan_.transpose() * p.middleRows(own_.first, own_.count)));
}

Vector DenseKernel::schur_product(const Vector& y) const {
  const Vector by_row = own(inverse_a1_, 0, own_.count) * (plan_ * y).array();
  return a2_.cwiseProduct(y) - sum_of_all(team_, Vector(plan_.transpose() * by_row));
}

bool DenseKernel::factor(const Vector& inverse_a1, const Vector& a2, double ridge) {
  const Vector diagonal = (a2.array() > 0).select(a2.array() * (1 + ridge), 1.0);
  if (shared()) {
    inverse_a1_ = inverse_a1;
    a2_ = diagonal;
    nearly_schur_ = std::make_unique<SparseSchur>(plan_, own(row_sums_, 0, own_.count).matrix(),
                                                  own(inverse_a1, 0, own_.count).matrix(), diagonal, team_);
    return true;
  }
  factor_.setZero(cols(), cols());
  // Entries this far below their row and column are indistinguishable from the ridge.
  constexpr double cutoff = 1e-15;
  double products = 0;
  for (Index i0 = 0; i0 < rows(); i0 += block_rows) {
    const Index count = std::min(block_rows, rows() - i0);
    Eigen::ArrayXd kept = Eigen::ArrayXd::Zero(count);
    const Eigen::ArrayXd floor = cutoff * row_sums_.segment(i0, count).array();
    for (Index j = 0; j < cols(); ++j) kept += (plan_.col(j).segment(i0, count).array() > floor).cast<double>();
    products += kept.square().sum();
  }
  // A scattered product costs about twenty times one inside a matrix product.
  const double all = static_cast<double>(rows()) * static_cast<double>(cols()) * static_cast<double>(cols());
  if (20 * products < all)
    subtract_sparse(inverse_a1, cutoff);
  else
    subtract_dense(inverse_a1);
  factor_.diagonal() += diagonal;
  return lapack::cholesky(factor_);
}

void DenseKernel::subtract_sparse(const Vector& inverse_a1, double cutoff) {
  std::vector<std::vector<std::pair<int, double>>> kept(static_cast<std::size_t>(rows()));
  for (Index j = 0; j < cols(); ++j)
    for (Index i = 0; i < rows(); ++i)
      if (plan_(i, j) > cutoff * row_sums_[i])
        kept[static_cast<std::size_t>(i)].emplace_back(static_cast<int>(j), plan_(i, j));
  for (Index i = 0; i < rows(); ++i) {
    const auto& row = kept[static_cast<std::size_t>(i)];
    for (std::size_t a = 0; a < row.size(); ++a) {
      const double scaled = inverse_a1[i] * row[a].second;
      double* column = factor_.col(row[a].first).data();
      for (std::size_t b = a; b < row.size(); ++b) column[row[b].first] -= scaled * row[b].second;
    }
  }
}

void DenseKernel::subtract_dense(const Vector& inverse_a1) {
  const Matrix scaled = inverse_a1.cwiseSqrt().asDiagonal() * plan_;
  const Index tiles = (cols() + tile - 1) / tile;
#pragma omp parallel for schedule(dynamic) collapse(2) if (tiles > 1)
  for (Index a = 0; a < tiles; ++a)
    for (Index b = 0; b < tiles; ++b) {
      if (b > a) continue;
      const Index ra = std::min(tile, cols() - a * tile), rb = std::min(tile, cols() - b * tile);
      factor_.block(a * tile, b * tile, ra, rb).noalias() -=
          scaled.middleCols(a * tile, ra).transpose() * scaled.middleCols(b * tile, rb);
    }
}

void DenseKernel::solve(Matrix& b) const {
  if (!shared()) return lapack::cholesky_solve(factor_, b);
  const auto times = [&](const Vector& y) { return schur_product(y); };
  const auto approximately = [&](const Vector& r) { return nearly_schur_->solve(r); };
  const Index most = 2 * cols() + 100;
  for (Index k = 0; k < b.cols(); ++k) b.col(k) = conjugate_gradients(times, approximately, b.col(k), most);
}

void DenseKernel::entropy_sums(const Vector& u, const Vector& v, Vector& by_row, Vector& by_column) const {
  Vector own_rows = Vector::Zero(own_.count);
  const Index blocks = (own_.count + block_rows - 1) / block_rows;
  Matrix partial = Matrix::Zero(cols(), blocks);
  for_row_blocks([&](Index first, Index count) {
    for (Index j = 0; j < cols(); ++j) {
      const Eigen::ArrayXd weighted =
          plan_.col(j).segment(first, count).array() * -(reduced_cost(j, first, count) + own(u, first, count) + v[j]);
      own_rows.segment(first, count).array() += weighted;
      partial(j, first / block_rows) = weighted.sum();
    }
  });
  by_row = rows_of_all(team_, std::move(own_rows));
  by_column = sum_of_all(team_, Vector(partial.rowwise().sum()));
}

Matrix DenseKernel::weighted_plan(const Vector& u, const Vector& v, const Vector& p, const Vector& q) const {
  Matrix w(own_.count, cols());
  const Vector row_part = (u + p).array() + 1;
  for_row_blocks([&](Index first, Index count) {
    for (Index j = 0; j < cols(); ++j)
      w.col(j).segment(first, count) = plan_.col(j).segment(first, count).array() *
                                       (reduced_cost(j, first, count) + own(row_part, first, count) + (v[j] + q[j]));
  });
  return w;
}

}  // namespace unshuffle::transport
