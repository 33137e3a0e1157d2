#include "unshuffle/model/sine.hpp"

#include <fmt/format.h>

#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {

std::unique_ptr<Model> Sine::bound_to(const Problem& problem) const {
  if (problem.outputs() != 1) {
    throw InvalidInput(fmt::format("model sine has one output; {} response columns were given", problem.outputs()));
  }
  return restored(names_or_default(problem.x_names, problem.x.cols(), "x"),
                  names_or_default(problem.z_names, problem.z.cols(), "z"));
}

std::unique_ptr<Model> Sine::restored(const std::vector<std::string>& x_names,
                                      const std::vector<std::string>& z_names) {
  auto model = std::make_unique<Sine>();
  model->x_count_ = static_cast<Index>(x_names.size());
  model->names_ = x_names;
  model->names_.insert(model->names_.end(), z_names.begin(), z_names.end());
  return model;
}

Matrix Sine::part(Side side, const MatrixRef& rows, const VectorRef& w) const {
  Matrix values = Matrix::Zero(rows.rows(), 1);
  for (Index k = 0; k < rows.cols(); ++k) {
    values.col(0).array() += (rows.col(k).array() * w(first(side) + k)).sin();
  }
  return values;
}

void Sine::pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                          Vector& gradient) const {
  for (Index k = 0; k < rows.cols(); ++k) {
    const auto column = rows.col(k).array();
    gradient(first(side) + k) += (cotangent.col(0).array() * column * (column * w(first(side) + k)).cos()).sum();
  }
}

Matrix Sine::jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const {
  Matrix jacobian = Matrix::Zero(rows.rows(), parameters());
  for (Index k = 0; k < rows.cols(); ++k) {
    const auto column = rows.col(k).array();
    jacobian.col(first(side) + k) = column * (column * w(first(side) + k)).cos();
  }
  return jacobian;
}

void Sine::add_curvature_part(Side side, const MatrixRef& rows, const VectorRef& w, const VectorRef& cotangent,
                              Matrix& hessian) const {
  for (Index k = 0; k < rows.cols(); ++k) {
    const auto column = rows.col(k).array();
    const Index here = first(side) + k;
    hessian(here, here) -= (cotangent.array() * column.square() * (column * w(here)).sin()).sum();
  }
}

}  // namespace unshuffle
