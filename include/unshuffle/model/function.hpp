// A regression function written by the user in C++, with its derivative given or computed automatically.
//
//   auto decay = unshuffle::make_function_model(
//       []<class T>(std::span<const double> x, std::span<const double> z, std::span<const T> w) -> T {
//         using std::exp;
//         return w[0] * exp(-w[1] * z[0]) + w[2] * x[0];
//       },
//       {"height", "rate", "slope"});
//
// Such a model need not be additive in x and z, so its transport problem is solved on the dense backend.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/model/model.hpp"

// This header lacks includes of its own, so it comes after Eigen's other headers.
#include <unsupported/Eigen/AutoDiff>

namespace unshuffle UNSHUFFLE_EXPORT {

class FunctionModel final : public Model {
 public:
  using Numbers = std::span<const double>;
  /// Writes the o outputs of f(x, z; w).
  using Value = std::function<void(Numbers x, Numbers z, Numbers w, std::span<double> value)>;
  /// Writes ∂f/∂w, o×p.
  using Jacobian = std::function<void(Numbers x, Numbers z, Numbers w, Eigen::Ref<Matrix> jacobian)>;

  FunctionModel(Value value, Jacobian jacobian, std::vector<std::string> parameter_names, Index outputs = 1)
      : value_(std::move(value)),
        jacobian_(std::move(jacobian)),
        names_(std::move(parameter_names)),
        outputs_(outputs) {}

  [[nodiscard]] std::string name() const override { return "function"; }

  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override {
    if (problem.outputs() != outputs_) {
      throw InvalidInput("the function model has " + std::to_string(outputs_) + " outputs; " +
                         std::to_string(problem.outputs()) + " response columns were given");
    }
    return std::make_unique<FunctionModel>(*this);
  }

  [[nodiscard]] Index parameters() const override { return static_cast<Index>(names_.size()); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return names_; }

  [[nodiscard]] Matrix predict(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w) const override {
    const Vector x = x_row.reshaped();
    Matrix prediction(z.rows(), outputs_);
    Vector z_row(z.cols());
    Vector value(outputs_);
    for (Index j = 0; j < z.rows(); ++j) {
      z_row = z.row(j);
      value_(numbers(x), numbers(z_row), {w.data(), std::size_t(w.size())}, {value.data(), std::size_t(outputs_)});
      prediction.row(j) = value;
    }
    return prediction;
  }

  void pull_back(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w, const MatrixRef& cotangent,
                 Vector& gradient) const override {
    const Vector x = x_row.reshaped();
    Matrix jacobian(outputs_, parameters());
    Vector z_row(z.cols());
    for (Index j = 0; j < z.rows(); ++j) {
      z_row = z.row(j);
      jacobian_(numbers(x), numbers(z_row), {w.data(), std::size_t(w.size())}, jacobian);
      gradient.noalias() += jacobian.transpose() * cotangent.row(j).transpose();
    }
  }

 private:
  static Numbers numbers(const Vector& v) { return {v.data(), static_cast<std::size_t>(v.size())}; }

  Value value_;
  Jacobian jacobian_;
  std::vector<std::string> names_;
  Index outputs_;
};

/// A one-output model from a callable template <class T> T f(x, z, w) with w a std::span<const T>, T being double or a
/// dual number; x and z are spans of double. The derivative is exact (forward automatic differentiation).
template <class Callable>
[[nodiscard]] FunctionModel make_function_model(Callable f, std::vector<std::string> parameter_names) {
  using Numbers = FunctionModel::Numbers;
  using Dual = Eigen::AutoDiffScalar<Vector>;
  // Unevaluated expressions would outlive the numbers they refer to.
  static_assert(std::is_same_v<std::invoke_result_t<Callable, Numbers, Numbers, std::span<const Dual>>, Dual>,
                "the callable must return the scalar type T of its parameters: write `-> T`");
  auto value = [f](Numbers x, Numbers z, Numbers w, std::span<double> result) { result[0] = f(x, z, w); };
  auto jacobian = [f](Numbers x, Numbers z, Numbers w, Eigen::Ref<Matrix> result) {
    const auto p = static_cast<Index>(w.size());
    std::vector<Dual> dual_w;
    dual_w.reserve(w.size());
    for (Index k = 0; k < p; ++k) dual_w.emplace_back(w[std::size_t(k)], p, k);
    const Dual dual = f(x, z, std::span<const Dual>(dual_w));
    // A function that never touches w yields a dual number without derivatives.
    if (dual.derivatives().size() == p) {
      result.row(0) = dual.derivatives();
    } else {
      result.setZero();
    }
  };
  return {std::move(value), std::move(jacobian), std::move(parameter_names)};
}

}  // namespace unshuffle
