#include "unshuffle/model/model.hpp"

namespace unshuffle {

Matrix AdditiveModel::predict(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w) const {
  Matrix prediction = part(Side::feature, z, w);
  if (x_row.cols() > 0) prediction.rowwise() += part(Side::response, x_row, w).row(0);
  return prediction;
}

void AdditiveModel::pull_back(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w,
                              const MatrixRef& cotangent, Vector& gradient) const {
  pull_back_part(Side::feature, z, w, cotangent, gradient);
  // g(x) is the same in every prediction of this x row, so only the summed cotangent reaches it.
  if (x_row.cols() > 0) {
    const Matrix summed = cotangent.colwise().sum();
    pull_back_part(Side::response, x_row, w, summed, gradient);
  }
}

Matrix predict_pairs(const Model& bound, const MatrixRef& x, const MatrixRef& z, const VectorRef& w) {
  if (const AdditiveModel* additive = bound.additive()) {
    Matrix prediction = additive->part(Side::feature, z, w);
    if (x.cols() > 0) prediction += additive->part(Side::response, x, w);
    return prediction;
  }
  if (z.rows() == 0) return {};
  Matrix prediction;
  Matrix x_row(1, x.cols());
  for (Index i = 0; i < z.rows(); ++i) {
    if (x.cols() > 0) x_row = x.row(i);
    const Matrix z_row = z.row(i);
    const Matrix value = bound.predict(x_row, z_row, w);
    if (i == 0) prediction.resize(z.rows(), value.cols());
    prediction.row(i) = value;
  }
  return prediction;
}

Matrix predict_linked(const Model& bound, const MatrixRef& x, const MatrixRef& z, const VectorRef& w) {
  return predict_pairs(bound, bound.basis(Side::response, x), bound.basis(Side::feature, z), w);
}

bool is_intercept(const std::string& name) { return name == "intercept" || name.ends_with(":intercept"); }

}  // namespace unshuffle
