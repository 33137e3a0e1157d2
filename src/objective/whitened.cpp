#include "objective/whitened.hpp"

#include <Eigen/Cholesky>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

class WhitenedAdditive final : public AdditiveModel {
 public:
  WhitenedAdditive(std::shared_ptr<const Model> inner, Matrix a)
      : owner_(std::move(inner)), inner_(*owner_->additive()), a_(std::move(a)) {}

  [[nodiscard]] std::string name() const override { return inner_.name(); }
  /// Some of the responses alone are not whitened: how they are combined is not theirs.
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override {
    if (problem.outputs() != a_.rows()) return inner_.bound_to(problem);
    return std::make_unique<WhitenedAdditive>(owner_, a_);
  }
  [[nodiscard]] Index parameters() const override { return inner_.parameters(); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return inner_.parameter_names(); }
  [[nodiscard]] bool linear_in_parameters() const override { return inner_.linear_in_parameters(); }
  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const override { return inner_.basis(side, rows); }

  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef& w) const override {
    return inner_.part(side, rows, w) * a_.transpose();
  }
  void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                      Vector& gradient) const override {
    inner_.pull_back_part(side, rows, w, cotangent * a_, gradient);
  }
  [[nodiscard]] Matrix jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const override {
    return a_(0, 0) * inner_.jacobian_part(side, rows, w);
  }
  void add_curvature_part(Side side, const MatrixRef& rows, const VectorRef& w, const VectorRef& cotangent,
                          Matrix& hessian) const override {
    inner_.add_curvature_part(side, rows, w, a_(0, 0) * cotangent, hessian);
  }

 private:
  std::shared_ptr<const Model> owner_;
  const AdditiveModel& inner_;
  Matrix a_;
};

class WhitenedModel final : public Model {
 public:
  WhitenedModel(std::shared_ptr<const Model> inner, Matrix a) : inner_(std::move(inner)), a_(std::move(a)) {}

  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override {
    if (problem.outputs() != a_.rows()) return inner_->bound_to(problem);
    return std::make_unique<WhitenedModel>(inner_, a_);
  }
  [[nodiscard]] Index parameters() const override { return inner_->parameters(); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return inner_->parameter_names(); }
  [[nodiscard]] bool linear_in_parameters() const override { return inner_->linear_in_parameters(); }
  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const override { return inner_->basis(side, rows); }

  [[nodiscard]] Matrix predict(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w) const override {
    return inner_->predict(x_row, z, w) * a_.transpose();
  }
  void pull_back(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w, const MatrixRef& cotangent,
                 Vector& gradient) const override {
    inner_->pull_back(x_row, z, w, cotangent * a_, gradient);
  }

 private:
  std::shared_ptr<const Model> inner_;
  Matrix a_;
};

}  // namespace

WhitenedProblem whitened(const Problem& problem, std::shared_ptr<const Model> bound, const Matrix& a) {
  auto made = std::make_shared<Problem>(problem);
  made->y = problem.y * a.transpose();
  if (bound->additive() != nullptr) return {made, std::make_shared<WhitenedAdditive>(std::move(bound), a)};
  return {made, std::make_shared<WhitenedModel>(std::move(bound), a)};
}

Matrix whitening(const Matrix& covariance) {
  const Eigen::LLT<Matrix> factor(covariance);
  if (factor.info() != Eigen::Success) throw InvalidInput("the covariance of the noise is not positive definite");
  return factor.matrixL().solve(Matrix::Identity(covariance.rows(), covariance.cols()));
}

}  // namespace unshuffle
