#include "objective/costs.hpp"

namespace unshuffle {

void squared_costs(const Model& bound, const TwoTables& tables, const VectorRef& w, Matrix& cost) {
  cost.setZero(tables.y.rows(), tables.z.rows());
  if (const AdditiveModel* sum = bound.additive()) {
    const Matrix t = tables.y - sum->part(Side::response, tables.x, w);
    const Matrix s = sum->part(Side::feature, tables.z, w);
#pragma omp parallel for schedule(static)
    for (Index j = 0; j < cost.cols(); ++j) {
      for (Index o = 0; o < t.cols(); ++o) cost.col(j).array() += (t.col(o).array() - s(j, o)).square();
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < cost.rows(); ++i) {
    cost.row(i) = (bound.predict(tables.x.row(i), tables.z, w).rowwise() - tables.y.row(i)).rowwise().squaredNorm();
  }
}

// ∂C_ij/∂f = -2(y_i - f_ij); for an additive model only sums over rows and columns are needed.
void pull_back_costs(const Model& bound, const TwoTables& tables, const MatrixRef& weights, const VectorRef& w,
                     Vector& gradient) {
  if (const AdditiveModel* sum = bound.additive()) {
    const Matrix t = tables.y - sum->part(Side::response, tables.x, w);
    const Matrix s = sum->part(Side::feature, tables.z, w);
    const Vector by_row = weights.rowwise().sum();
    const Vector by_column = weights.colwise().sum();
    sum->pull_back_part(Side::response, tables.x, w, -2 * (by_row.asDiagonal() * t - weights * s), gradient);
    sum->pull_back_part(Side::feature, tables.z, w, -2 * (weights.transpose() * t - by_column.asDiagonal() * s),
                        gradient);
    return;
  }
  // A fixed number of partial sums, so that the result does not depend on the number of threads.
  constexpr Index parts = 16;
  Matrix partial = Matrix::Zero(gradient.size(), parts);
#pragma omp parallel for schedule(dynamic)
  for (Index part = 0; part < parts; ++part) {
    Vector sum = Vector::Zero(gradient.size());
    for (Index i = part; i < weights.rows(); i += parts) {
      const Matrix residual = bound.predict(tables.x.row(i), tables.z, w).rowwise() - tables.y.row(i);
      bound.pull_back(tables.x.row(i), tables.z, w, 2 * (weights.row(i).transpose().asDiagonal() * residual), sum);
    }
    partial.col(part) = sum;
  }
  gradient += partial.rowwise().sum();
}

}  // namespace unshuffle
