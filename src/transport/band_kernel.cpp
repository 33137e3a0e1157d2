#include "transport/band_kernel.hpp"

#include <cmath>

#include "transport/lapack.hpp"

namespace unshuffle::transport {

BandKernel::BandKernel(const LineMeasure& rows, const LineMeasure& columns, double epsilon)
    : rows_(rows),
      columns_(columns),
      epsilon_(epsilon),
      row_base_(Vector::Zero(rows.size())),
      column_base_(Vector::Zero(columns.size())) {}

void BandKernel::rebase(Vector& u, Vector& v) {
  row_base_ += u;
  column_base_ += v;
  u.setZero();
  v.setZero();
}

Vector BandKernel::evaluate(const VectorRef& v) {
  windows_ = windows_of(rows_.position, columns_, v + column_base_, epsilon_);
  offsets_.resize(static_cast<std::size_t>(rows()));
  std::size_t total = 0;
  for (Index i = 0; i < rows(); ++i) {
    offsets_[static_cast<std::size_t>(i)] = total;
    total += static_cast<std::size_t>(length(i));
  }
  if (plan_.size() < total) plan_.resize(total);
  shifts_.resize(rows());
  Vector log_sums(rows());
  for (Index i = 0; i < rows(); ++i) {
    auto entry = row(i);
    entry = exponents(v, i);
    shifts_[i] = entry.maxCoeff();
    entry = (entry - shifts_[i]).exp() * columns_.weight.segment(begin(i), length(i)).array();
    log_sums[i] = shifts_[i] + std::log(entry.sum());
  }
  return log_sums;
}

void BandKernel::set_rows(const VectorRef& u) {
  row_sums_.resize(rows());
  column_sums_ = Vector::Zero(cols());
  for (Index i = 0; i < rows(); ++i) {
    auto entry = row(i);
    entry *= rows_.weight[i] * std::exp(u[i] + shifts_[i]);
    row_sums_[i] = entry.sum();
    column_sums_.segment(begin(i), length(i)).array() += entry;
  }
}

Vector BandKernel::column_log_sums(const VectorRef& u) const {
  return log_sums(columns_.position, rows_, u + row_base_, epsilon_) + column_base_;
}

Matrix BandKernel::apply(const Matrix& q) const {
  Matrix result(rows(), q.cols());
  for (Index c = 0; c < q.cols(); ++c)
    for (Index i = 0; i < rows(); ++i)
      result(i, c) = row(i).matrix().dot(q.col(c).segment(begin(i), length(i)));
  return result;
}

Matrix BandKernel::apply_transposed(const Matrix& p) const {
  Matrix result = Matrix::Zero(cols(), p.cols());
  for (Index c = 0; c < p.cols(); ++c)
    for (Index i = 0; i < rows(); ++i) result.col(c).segment(begin(i), length(i)) += p(i, c) * row(i).matrix();
  return result;
}

bool BandKernel::factor(const Vector& inverse_a1, const Vector& a2, double ridge) {
  Index width = 0;
  for (Index i = 0; i < rows(); ++i) width = std::max(width, length(i) - 1);
  factor_.setZero(width + 1, cols());
  factor_.row(0) = a2 * (1 + ridge);
  for (Index i = 0; i < rows(); ++i) {
    if (inverse_a1[i] == 0) continue;
    auto entry = row(i).matrix();
    const Index first = begin(i), count = length(i);
    for (Index j = 0; j < count; ++j)
      factor_.col(first + j).head(count - j) -= (inverse_a1[i] * entry[j]) * entry.tail(count - j);
  }
  return lapack::band_cholesky(factor_);
}

void BandKernel::solve(Matrix& b) const { lapack::band_cholesky_solve(factor_, b); }

void BandKernel::entropy_sums(const Vector& u, const Vector& v, Vector& by_row, Vector& by_column) const {
  by_row.resize(rows());
  by_column = Vector::Zero(cols());
  for (Index i = 0; i < rows(); ++i) {
    const Eigen::ArrayXd weighted = row(i) * -(exponents(v, i) + u[i]);
    by_row[i] = weighted.sum();
    by_column.segment(begin(i), length(i)).array() += weighted;
  }
}

}  // namespace unshuffle::transport
