#include "transport/dense_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/lapack.hpp"
#include "core/of_all.hpp"
#include "transport/conjugate_gradients.hpp"
#include "transport/dense_products.hpp"
#include "transport/scaling_form.hpp"

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
      entries_(cost_.rows(), cost_.cols()),
      shifts_(cost_.rows()),
      row_products_(cost_.rows()),
      row_guess_(Vector::Zero(cost_.rows())) {}

void DenseKernel::rebase(Vector& u, Vector& v) {
  row_base_ += u;
  column_base_ += v;
  u.setZero();
  v.setZero();
  row_guess_.setZero();
  current_ = false;
}

void DenseKernel::clear_base() {
  row_base_.setZero();
  column_base_.setZero();
  row_guess_.setZero();
  current_ = false;
}

void DenseKernel::set_epsilon(double epsilon) {
  row_base_ *= epsilon_ / epsilon;
  column_base_ *= epsilon_ / epsilon;
  epsilon_ = epsilon;
  inverse_epsilon_ = 1 / epsilon;
  current_ = false;
}

/// body(first row, number of rows) for all blocks of this process's rows, in parallel when there is enough to do.
template <class Body>
void DenseKernel::for_row_blocks(Body body) const {
  const Index blocks = (own_.count + block_rows - 1) / block_rows;
#pragma omp parallel for schedule(static) if (cost_.size() > 50000)
  for (Index b = 0; b < blocks; ++b) body(b * block_rows, std::min(block_rows, own_.count - b * block_rows));
}

Vector DenseKernel::evaluate(const VectorRef& v) {
  if (current_ && ((v - reference_).array().abs() <= scaling::reach).all()) {
    column_factor_ = (v - reference_).array().exp();
    row_products_ = dense_times(entries_, column_factor_);
    normal_ = false;
  } else {
    compute(v);
  }
  v_ = v;
  return rows_of_all(team_, Vector(shifts_.array() + row_products_.array().log()));
}

/// K with reference v. A row's potential is about minus the logarithm of its sum, so the last one is a good shift; rows
/// where it is not are shifted by their largest exponent.
void DenseKernel::compute(const VectorRef& v) {
  reference_ = v;
  column_factor_ = Vector::Ones(cols());
  for_row_blocks([&](Index first, Index count) {
    shifts_.segment(first, count) = row_guess_.segment(first, count);
    fill(first, count);
    const auto sums = row_products_.segment(first, count).array();
    if ((sums >= scaling::least_sum && sums <= scaling::largest_sum).all()) return;
    Eigen::ArrayXd largest = Eigen::ArrayXd::Constant(count, -std::numeric_limits<double>::infinity());
    for (Index j = 0; j < cols(); ++j)
      if (column_weights_[j] > 0) largest = largest.max(reduced_cost(j, first, count) + reference_[j]);
    shifts_.segment(first, count) = largest;
    fill(first, count);
  });
  current_ = normal_ = true;
}

void DenseKernel::fill(Index first, Index count) {
  auto sums = row_products_.segment(first, count).array();
  const auto shift = shifts_.segment(first, count).array();
  sums.setZero();
  for (Index j = 0; j < cols(); ++j) {
    auto entry = entries_.col(j).segment(first, count).array();
    if (!(column_weights_[j] > 0)) {
      entry.setZero();
      continue;
    }
    entry =
        (reduced_cost(j, first, count) + reference_[j] - shift).max(scaling::least_exponent).exp() * column_weights_[j];
    sums += entry;
  }
}

void DenseKernel::set_rows(const Vector& u) {
  row_factor_ = own(row_weights_, 0, own_.count) * (own(u, 0, own_.count) + shifts_.array()).exp();
  row_sums_ = rows_of_all(team_, Vector(row_factor_.cwiseProduct(row_products_)));
  column_sums_ = column_factor_.cwiseProduct(sum_of_all(team_, dense_transposed_times(entries_, row_factor_)));
  row_guess_ = -own(u, 0, own_.count);
}

Vector DenseKernel::column_log_sums(const Vector& u) const {
  Vector log_sums = (column_sums_.array() / column_weights_.array()).log() - v_.array();
  std::vector<Index> without;
  for (Index j = 0; j < cols(); ++j)
    if (!(column_sums_[j] > scaling::nearly_empty * column_weights_[j])) without.push_back(j);
  if (!without.empty()) log_sums_of(without, u, log_sums);
  return log_sums;
}

/// The log sums of some columns from the cost itself.
void DenseKernel::log_sums_of(const std::vector<Index>& columns, const Vector& u, Vector& log_sums) const {
  const double none = -std::numeric_limits<double>::infinity();
  const auto weights = own(row_weights_, 0, own_.count);
  const auto count = static_cast<Index>(columns.size());
  Eigen::ArrayXd largest(count), sums(count);
#pragma omp parallel for schedule(static) if (count * own_.count > 50000)
  for (Index k = 0; k < count; ++k) {
    const Index j = columns[static_cast<std::size_t>(k)];
    const Eigen::ArrayXd entry = (weights > 0).select(reduced_cost(j, 0, own_.count) + own(u, 0, own_.count), none);
    largest[k] = entry.maxCoeff();
    sums[k] = largest[k] > none ? ((entry - largest[k]).exp() * weights).sum() : 0;
  }
  const Eigen::ArrayXd largest_here = largest;
  largest = largest_of_all(team_, std::move(largest));
  if (shared()) sums = sum_of_all(team_, Eigen::ArrayXd(sums * (largest_here - largest).exp()));
  for (Index k = 0; k < count; ++k) log_sums[columns[static_cast<std::size_t>(k)]] = largest[k] + std::log(sums[k]);
}

void DenseKernel::scale_entries(const Eigen::ArrayXd& by_row, const Eigen::ArrayXd& by_column) {
  for_row_blocks([&](Index first, Index count) {
    const auto scale = by_row.segment(first, count);
    for (Index j = 0; j < cols(); ++j) entries_.col(j).segment(first, count).array() *= scale * by_column[j];
  });
}

/// Moves the column factor into K, whose rows then sum to one.
void DenseKernel::normalise() {
  if (normal_) return;
  scale_entries(row_products_.array().inverse(), column_factor_);
  shifts_.array() += row_products_.array().log();
  row_factor_ = row_factor_.cwiseProduct(row_products_);
  row_products_.setOnes();
  column_factor_.setOnes();
  reference_ = v_;
  normal_ = true;
}

void DenseKernel::settle() {
  scale_entries(row_factor_, column_factor_);
  row_products_ = row_products_.cwiseProduct(row_factor_);
  row_factor_.setOnes();
  column_factor_.setOnes();
  normal_ = true;
  current_ = false;  // rows without weight are lost
}

Matrix DenseKernel::apply(const Matrix& q) const {
  Matrix product(own_.count, q.cols());
  for (Index k = 0; k < q.cols(); ++k)
    product.col(k) = row_factor_.cwiseProduct(dense_times(entries_, column_factor_.cwiseProduct(q.col(k))));
  return rows_of_all(team_, std::move(product));
}

Matrix DenseKernel::apply_transposed(const Matrix& p) const {
  Matrix product(cols(), p.cols());
  for (Index k = 0; k < p.cols(); ++k) {
    const Vector scaled = row_factor_.cwiseProduct(p.col(k).segment(own_.first, own_.count));
    product.col(k) = column_factor_.cwiseProduct(dense_transposed_times(entries_, scaled));
  }
  return sum_of_all(team_, std::move(product));
}

Vector DenseKernel::schur_product(const Vector& y) const {
  const Vector by_row = schur_weight_.cwiseProduct(dense_times(entries_, y));
  return a2_.cwiseProduct(y) - sum_of_all(team_, dense_transposed_times(entries_, by_row));
}

bool DenseKernel::factor(const Vector& inverse_a1, const Vector& a2, double ridge) {
  normalise();
  const Vector diagonal = (a2.array() > 0).select(a2.array() * (1 + ridge), 1.0);
  // Γᵀ A₁⁻¹ Γ = Kᵀ diag(weight) K.
  const Vector weight = own(inverse_a1, 0, own_.count) * row_factor_.array().square();
  if (shared()) {
    schur_weight_ = weight;
    a2_ = diagonal;
    nearly_schur_ = std::make_unique<SparseSchur>(entries_, row_products_, weight, diagonal, team_);
    return true;
  }
  factor_.setZero(cols(), cols());
  // Entries this far below their row and column are indistinguishable from the ridge.
  constexpr double cutoff = 1e-15;
  const Vector floor = cutoff * row_products_;
  double products = 0;
  for (Index i0 = 0; i0 < rows(); i0 += block_rows) {
    const Index count = std::min(block_rows, rows() - i0);
    Eigen::ArrayXd kept = Eigen::ArrayXd::Zero(count);
    for (Index j = 0; j < cols(); ++j)
      kept += (entries_.col(j).segment(i0, count).array() > floor.segment(i0, count).array()).cast<double>();
    products += kept.square().sum();
  }
  // A scattered product costs about twenty times one inside a matrix product.
  const double all = static_cast<double>(rows()) * static_cast<double>(cols()) * static_cast<double>(cols());
  if (20 * products < all)
    subtract_sparse(weight, floor);
  else
    subtract_dense(weight);
  factor_.diagonal() += diagonal;
  return lapack::cholesky(factor_);
}

void DenseKernel::subtract_sparse(const Vector& weight, const Vector& floor) {
  std::vector<std::vector<std::pair<int, double>>> kept(static_cast<std::size_t>(rows()));
  for (Index j = 0; j < cols(); ++j)
    for (Index i = 0; i < rows(); ++i)
      if (entries_(i, j) > floor[i])
        kept[static_cast<std::size_t>(i)].emplace_back(static_cast<int>(j), entries_(i, j));
  for (Index i = 0; i < rows(); ++i) {
    const auto& row = kept[static_cast<std::size_t>(i)];
    for (std::size_t a = 0; a < row.size(); ++a) {
      const double scaled = weight[i] * row[a].second;
      double* column = factor_.col(row[a].first).data();
      for (std::size_t b = a; b < row.size(); ++b) column[row[b].first] -= scaled * row[b].second;
    }
  }
}

void DenseKernel::subtract_dense(const Vector& weight) {
  const Matrix scaled = weight.cwiseSqrt().asDiagonal() * entries_;
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
  constexpr double enough = 1e-14;  // the caller's refinement removes the rest
  const Patience patience{.share = enough, .most = 2 * cols() + 100};
  for (Index k = 0; k < b.cols(); ++k) b.col(k) = conjugate_gradients(times, approximately, b.col(k), patience).x;
}

bool DenseKernel::prepare_products(const Vector& inverse_a1, const Vector& a2) {
  if (shared()) return false;
  normalise();
  products_ = std::make_unique<SchurProducts>(ScaledPlan{entries_, row_factor_, row_sums_}, inverse_a1, a2);
  return true;
}

void DenseKernel::entropy_sums(const Vector& u, const Vector& v, Vector& by_row, Vector& by_column) const {
  Vector own_rows = Vector::Zero(own_.count);
  const Index blocks = (own_.count + block_rows - 1) / block_rows;
  Matrix partial = Matrix::Zero(cols(), blocks);
  for_row_blocks([&](Index first, Index count) {
    for (Index j = 0; j < cols(); ++j) {
      const Eigen::ArrayXd weighted = entries_.col(j).segment(first, count).array() *
                                      -(reduced_cost(j, first, count) + own(u, first, count) + v[j]);
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
      w.col(j).segment(first, count) = entries_.col(j).segment(first, count).array() *
                                       (reduced_cost(j, first, count) + own(row_part, first, count) + (v[j] + q[j]));
  });
  return w;
}

}  // namespace unshuffle::transport
