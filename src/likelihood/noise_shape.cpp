#include "likelihood/noise_shape.hpp"

#include <cmath>

namespace unshuffle {

namespace {

// Without noise the shape is anything, and a search would follow it without end: logarithms stay within this.
constexpr double largest_logarithm = 8;

double within_limit(double tau) { return largest_logarithm * std::tanh(tau / largest_logarithm); }
double slope_within_limit(double tau) { return 1 - std::pow(std::tanh(tau / largest_logarithm), 2); }

}  // namespace

NoiseShape::NoiseShape(NoiseCovariance kind, Index outputs) : kind_(resolved(kind, outputs)), outputs_(outputs) {}

Index NoiseShape::parameters() const {
  if (kind_ == NoiseCovariance::equal || outputs_ == 1) return 0;
  return outputs_ - 1 + (kind_ == NoiseCovariance::full ? outputs_ * (outputs_ - 1) / 2 : 0);
}

Matrix NoiseShape::transform(const VectorRef& tau) const {
  Matrix made = Matrix::Identity(outputs_, outputs_);
  if (tau.size() == 0) return made;
  const Index last = outputs_ - 1;
  const Vector logs = tau.head(last).unaryExpr(&within_limit);
  made.diagonal().head(last) = logs.array().exp();
  made(last, last) = std::exp(-logs.sum());
  if (kind_ != NoiseCovariance::full) return made;
  Index at = last;
  for (Index l = 0; l < outputs_; ++l) {
    for (Index k = l + 1; k < outputs_; ++k) made(k, l) = tau(at++);
  }
  return made;
}

void NoiseShape::pull_back(const VectorRef& tau, const Matrix& slope, Eigen::Ref<Vector> gradient) const {
  if (tau.size() == 0) return;
  const Matrix here = transform(tau);
  const Index last = outputs_ - 1;
  for (Index k = 0; k < last; ++k) {
    const double by_log = slope(k, k) * here(k, k) - slope(last, last) * here(last, last);
    gradient(k) += by_log * slope_within_limit(tau(k));
  }
  if (kind_ != NoiseCovariance::full) return;
  Index at = last;
  for (Index l = 0; l < outputs_; ++l) {
    for (Index k = l + 1; k < outputs_; ++k) gradient(at++) += slope(k, l);
  }
}

namespace {

/// What additive and other models have in common; rows of x hold those of the inner model, then the responses.
struct Inner {
  const Model& model;
  NoiseShape shape;
  Index outputs, parameters, x_columns;

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> made = model.parameter_names();
    for (Index k = 0; k < shape.parameters(); ++k) made.push_back("noise" + std::to_string(k + 1));
    return made;
  }
  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const {
    if (side == Side::feature) return model.basis(side, rows);
    if (x_columns == 0) return rows;
    const Matrix inside = model.basis(side, rows.leftCols(x_columns));
    Matrix made(rows.rows(), inside.cols() + outputs);
    made << inside, rows.rightCols(outputs);
    return made;
  }
  [[nodiscard]] Matrix x_of(const MatrixRef& rows) const { return rows.leftCols(rows.cols() - outputs); }
  [[nodiscard]] Vector w_of(const VectorRef& all) const { return all.head(parameters); }
  [[nodiscard]] Vector tau_of(const VectorRef& all) const { return all.tail(all.size() - parameters); }
  void pull_back_shape(const VectorRef& all, const Matrix& slope, Vector& gradient) const {
    shape.pull_back(tau_of(all), slope, gradient.tail(all.size() - parameters));
  }
};

class ShapedAdditive final : public AdditiveModel {
 public:
  explicit ShapedAdditive(Inner inner) : inner_(std::move(inner)), sum_(*inner_.model.additive()) {}

  [[nodiscard]] std::string name() const override { return sum_.name(); }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem&) const override {
    return std::make_unique<ShapedAdditive>(inner_);
  }
  [[nodiscard]] Index parameters() const override { return inner_.parameters + inner_.shape.parameters(); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return inner_.names(); }
  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const override { return inner_.basis(side, rows); }

  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef& all) const override {
    const Matrix turn = inner_.shape.transform(inner_.tau_of(all)).transpose();
    if (side == Side::feature) return sum_.part(side, rows, inner_.w_of(all)) * turn;
    return rows.rightCols(inner_.outputs) + away(rows, all) * turn;
  }
  void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& all, const MatrixRef& cotangent,
                      Vector& gradient) const override {
    const Vector w = inner_.w_of(all);
    const Matrix inside = cotangent * inner_.shape.transform(inner_.tau_of(all));
    const bool features = side == Side::feature;
    inner_.pull_back_shape(all, cotangent.transpose() * (features ? sum_.part(side, rows, w) : away(rows, all)),
                           gradient);
    if (!features && inner_.x_columns == 0) return;
    Vector in_w = Vector::Zero(w.size());
    sum_.pull_back_part(side, features ? Matrix(rows) : inner_.x_of(rows), w, inside, in_w);
    gradient.head(w.size()) += in_w;
  }
  /// There are several outputs.
  [[nodiscard]] Matrix jacobian_part(Side, const MatrixRef&, const VectorRef&) const override { return {}; }

 private:
  /// g(x) - y.
  [[nodiscard]] Matrix away(const MatrixRef& rows, const VectorRef& all) const {
    Matrix made = -rows.rightCols(inner_.outputs);
    if (inner_.x_columns > 0) made += sum_.part(Side::response, inner_.x_of(rows), inner_.w_of(all));
    return made;
  }

  Inner inner_;
  const AdditiveModel& sum_;
};

class ShapedModel final : public Model {
 public:
  explicit ShapedModel(Inner inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::string name() const override { return inner_.model.name(); }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem&) const override {
    return std::make_unique<ShapedModel>(inner_);
  }
  [[nodiscard]] Index parameters() const override { return inner_.parameters + inner_.shape.parameters(); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return inner_.names(); }
  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const override { return inner_.basis(side, rows); }

  [[nodiscard]] Matrix predict(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& all) const override {
    const Matrix turn = inner_.shape.transform(inner_.tau_of(all)).transpose();
    return (away(x_row, z, all) * turn).rowwise() + x_row.row(0).tail(inner_.outputs);
  }
  void pull_back(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& all, const MatrixRef& cotangent,
                 Vector& gradient) const override {
    const Vector w = inner_.w_of(all);
    inner_.pull_back_shape(all, cotangent.transpose() * away(x_row, z, all), gradient);
    Vector in_w = Vector::Zero(w.size());
    inner_.model.pull_back(inner_.x_of(x_row), z, w, cotangent * inner_.shape.transform(inner_.tau_of(all)), in_w);
    gradient.head(w.size()) += in_w;
  }

 private:
  /// f - y.
  [[nodiscard]] Matrix away(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& all) const {
    return inner_.model.predict(inner_.x_of(x_row), z, inner_.w_of(all)).rowwise() - x_row.row(0).tail(inner_.outputs);
  }

  Inner inner_;
};

}  // namespace

ShapedProblem shaped(const Problem& problem, const Model& bound, const NoiseShape& shape) {
  auto made = std::make_shared<Problem>(problem);
  made->x.resize(problem.responses(), problem.x.cols() + problem.outputs());
  if (problem.x.cols() > 0) made->x.leftCols(problem.x.cols()) = problem.x;
  made->x.rightCols(problem.outputs()) = problem.y;
  made->x_names.insert(made->x_names.end(), problem.y_names.begin(), problem.y_names.end());
  const Inner inner{bound, shape, problem.outputs(), bound.parameters(), problem.x.cols()};
  if (bound.additive() != nullptr) return {made, std::make_shared<ShapedAdditive>(inner)};
  return {made, std::make_shared<ShapedModel>(inner)};
}

}  // namespace unshuffle
