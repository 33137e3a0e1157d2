#include "transport/saturated_kernel.hpp"

#include <cmath>

#include "transport/conjugate_gradients.hpp"

namespace unshuffle::transport {

SaturatedKernel::SaturatedKernel(Index rows, Index columns, const std::vector<ClosePair>& close, double epsilon)
    : inverse_epsilon_(1 / epsilon),
      excess_(rows, columns),
      row_base_(Vector::Zero(rows)),
      column_base_(Vector::Zero(columns)) {
  std::vector<Eigen::Triplet<double, Index>> entries;
  for (const ClosePair& pair : close)
    entries.emplace_back(pair.row, pair.column, std::expm1(pair.closeness * inverse_epsilon_));
  excess_.setFromTriplets(entries.begin(), entries.end());
}

Vector SaturatedKernel::evaluate(const VectorRef& v) {
  peak_ = v.maxCoeff();
  column_factor_ = (v.array() - peak_).exp() / static_cast<double>(cols());
  row_products_ = excess_ * column_factor_;
  row_products_.array() += column_factor_.sum();
  return row_products_.array().log() + (peak_ - inverse_epsilon_);
}

void SaturatedKernel::set_rows(const Vector& u) {
  row_factor_ = (u.array() + (peak_ - inverse_epsilon_)).exp() / static_cast<double>(rows());
  row_sums_ = row_factor_.cwiseProduct(row_products_);
  column_products_ = excess_.transpose() * row_factor_;
  column_products_.array() += row_factor_.sum();
  column_sums_ = column_factor_.cwiseProduct(column_products_);
}

Vector SaturatedKernel::column_log_sums(const Vector&) const { return column_products_.array().log() - peak_; }

Matrix SaturatedKernel::apply(const Matrix& q) const {
  const Matrix scaled = column_factor_.asDiagonal() * q;
  Matrix product = excess_ * scaled;
  product.rowwise() += scaled.colwise().sum();
  return row_factor_.asDiagonal() * product;
}

Matrix SaturatedKernel::apply_transposed(const Matrix& p) const {
  const Matrix scaled = row_factor_.asDiagonal() * p;
  Matrix product = excess_.transpose() * scaled;
  product.rowwise() += scaled.colwise().sum();
  return column_factor_.asDiagonal() * product;
}

double SaturatedKernel::mass(const ClosePair& pair) const {
  return row_factor_[pair.row] * std::exp(pair.closeness * inverse_epsilon_) * column_factor_[pair.column];
}

bool SaturatedKernel::prepare_products(const Vector& inverse_a1, const Vector& a2) {
  inverse_a1_ = inverse_a1;
  a2_ = a2;
  return true;
}

bool SaturatedKernel::iterate(Vector& b, double share) const {
  const auto product = [&](const Vector& y) -> Vector {
    return a2_.cwiseProduct(y) - apply_transposed(inverse_a1_.cwiseProduct(Vector(apply(y)))).col(0);
  };
  const auto approximately = [&](const Vector& r) -> Vector { return r.cwiseQuotient(a2_); };
  Iterated found = conjugate_gradients(product, approximately, b, {share, 200});
  b = std::move(found.x);
  return found.reached;
}

}  // namespace unshuffle::transport
