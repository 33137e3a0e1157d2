#include "transport/band_kernel.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/lapack.hpp"

namespace unshuffle::transport {

BandKernel::BandKernel(const LineMeasure& rows, const LineMeasure& columns, double epsilon)
    : rows_(rows),
      columns_(columns),
      epsilon_(epsilon),
      row_base_(Vector::Zero(rows.size())),
      column_base_(Vector::Zero(columns.size())) {}

Vector BandKernel::evaluate(const VectorRef& v) {
  windows_ = windows_of(rows_.position, columns_, v + column_base_, epsilon_);
  offsets_.resize(static_cast<std::size_t>(rows()));
  Index total = 0;
  for (Index i = 0; i < rows(); ++i) {
    offsets_[static_cast<std::size_t>(i)] = total;
    total += length(i);
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
    for (Index i = 0; i < rows(); ++i) result(i, c) = row(i).matrix().dot(q.col(c).segment(begin(i), length(i)));
  return result;
}

Matrix BandKernel::apply_transposed(const Matrix& p) const {
  Matrix result = Matrix::Zero(cols(), p.cols());
  for (Index c = 0; c < p.cols(); ++c)
    for (Index i = 0; i < rows(); ++i) result.col(c).segment(begin(i), length(i)) += p(i, c) * row(i).matrix();
  return result;
}

// S = A₂ - Γᵀ A₁⁻¹ Γ row by row, four rows at a time so that each entry of S is loaded and stored once for four of
// them. Entries far below their row's sum are omitted; Newton and the refinement of the adjoint correct for them.
bool BandKernel::factor(const Vector& inverse_a1, const Vector& a2, double ridge) {
  constexpr double negligible = 1e-13;
  constexpr Index together = 4;
  std::vector<Index> from(static_cast<std::size_t>(rows())), to(from);
  Index width = 0;
  for (Index i = 0; i < rows(); ++i) {
    const auto entry = row(i);
    const double floor = negligible * row_sums_[i];
    Index first = 0, last = length(i);
    while (first + 1 < last && entry[first] < floor) ++first;
    while (last > first + 1 && entry[last - 1] < floor) --last;
    from[static_cast<std::size_t>(i)] = begin(i) + first;
    to[static_cast<std::size_t>(i)] = begin(i) + last;
  }
  auto group_end = [&](Index i) { return std::min(i + together, rows()); };
  auto span = [&](Index i) {
    const auto first = from.begin() + i, last = from.begin() + group_end(i);
    const auto low = *std::min_element(first, last);
    return std::pair{low, *std::max_element(to.begin() + i, to.begin() + group_end(i))};
  };
  for (Index i = 0; i < rows(); i += together) width = std::max(width, span(i).second - span(i).first - 1);
  factor_.setZero(width + 1, cols());
  factor_.row(0) = a2 * (1 + ridge);
  for (Index i = 0; i < rows(); i += together) {
    const auto [low, high] = span(i);
    const Index count = high - low;
    block_.setZero(count, together);
    std::array<double, together> scale{};
    for (Index k = i; k < group_end(i); ++k) {
      const Index first = from[static_cast<std::size_t>(k)], size = to[static_cast<std::size_t>(k)] - first;
      block_.col(k - i).segment(first - low, size) = row(k).segment(first - begin(k), size);
      scale[static_cast<std::size_t>(k - i)] = inverse_a1[k];
    }
    for (Index j = 0; j < count; ++j) {
      const Index size = count - j;
      factor_.col(low + j).head(size).array() -=
          (scale[0] * block_(j, 0)) * block_.col(0).tail(size) + (scale[1] * block_(j, 1)) * block_.col(1).tail(size) +
          (scale[2] * block_(j, 2)) * block_.col(2).tail(size) + (scale[3] * block_(j, 3)) * block_.col(3).tail(size);
    }
  }
  return lapack::band_cholesky(factor_);
}

void BandKernel::solve(Matrix& b) const { lapack::band_cholesky_solve(factor_, b); }

BandKernel::DistanceSums BandKernel::distance_sums() const {
  DistanceSums sums{Vector(rows()), Vector(rows()), Vector::Zero(cols()), Vector::Zero(cols())};
  Eigen::ArrayXd d, moment;
  for (Index i = 0; i < rows(); ++i) {
    const Index first = begin(i), count = length(i);
    d = rows_.position[i] - columns_.position.segment(first, count).array();
    moment = row(i) * d;
    sums.row_first[i] = moment.sum();
    sums.column_first.segment(first, count).array() += moment;
    moment *= d;
    sums.row_second[i] = moment.sum();
    sums.column_second.segment(first, count).array() += moment;
  }
  return sums;
}

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
