// The interface of a regression model f(x, z; w).
//
// The outer loop needs only predictions and the product of a weighted plan with the Jacobian (docs/mathematics.md
// §3.3),
//   ∇F = Σ_ij W_ij ∇_w C_ij = Σ_ij <V_ij, ∂f(x_i, z_j; w)/∂w>,   V_ij = W_ij ∂C_ij/∂f.
// An additive model, f = g(x; w) + h(z; w), provides both side by side, so V is needed only summed over rows or
// columns: n + m cotangents instead of n·m, and with one output the transport problem becomes one-dimensional.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

class AdditiveModel;

class Model {
 public:
  virtual ~Model() = default;

  /// As the user writes it: "linear", "sine", "spline:5".
  [[nodiscard]] virtual std::string name() const = 0;

  /// This model with its dimensions, and anything derived from the tables such as knots, fixed.
  /// Everything below may be called on the returned model only.
  [[nodiscard]] virtual std::unique_ptr<Model> bound_to(const Problem& problem) const = 0;

  [[nodiscard]] virtual Index parameters() const = 0;
  [[nodiscard]] virtual std::vector<std::string> parameter_names() const = 0;

  /// f is linear in w, so that one least-squares step fits linked rows exactly.
  [[nodiscard]] virtual bool linear_in_parameters() const { return false; }

  /// This model as an additive one, or null.
  [[nodiscard]] virtual const AdditiveModel* additive() const { return nullptr; }

  /// What the model reads of a table's rows, computed once per fit; a spline returns its basis columns.
  [[nodiscard]] virtual Matrix basis(Side, const MatrixRef& rows) const { return rows; }

  /// f(x, z_j; w) of one x row (1×d) against every row of z: m×o. Both already went through basis().
  [[nodiscard]] virtual Matrix predict(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w) const = 0;

  /// gradient += Σ_j <cotangent_j, ∂f(x, z_j; w)/∂w>, cotangent m×o.
  virtual void pull_back(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w, const MatrixRef& cotangent,
                         Vector& gradient) const = 0;
};

/// f(x, z; w) = g(x; w) + h(z; w); `part` is g on the response side and h on the feature side.
class AdditiveModel : public Model {
 public:
  [[nodiscard]] const AdditiveModel* additive() const final { return this; }

  /// g or h of every row: N×o.
  [[nodiscard]] virtual Matrix part(Side side, const MatrixRef& rows, const VectorRef& w) const = 0;

  /// gradient += Σ_r <cotangent_r, ∂part(rows_r)/∂w>, cotangent N×o.
  virtual void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                              Vector& gradient) const = 0;

  /// ∂part/∂w of a one-output model: N×p. Columns of parameters that live on the other side are zero.
  [[nodiscard]] virtual Matrix jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const = 0;

  /// hessian += Σ_r cotangent_r ∂²part(rows_r)/∂w² of a one-output model. Nothing to add when linear in w.
  virtual void add_curvature_part(Side, const MatrixRef&, const VectorRef&, const VectorRef&, Matrix&) const {}

  [[nodiscard]] Matrix predict(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w) const final;
  void pull_back(const MatrixRef& x_row, const MatrixRef& z, const VectorRef& w, const MatrixRef& cotangent,
                 Vector& gradient) const final;
};

/// f(x_i, z_i; w) of rows that are linked, N×o. Both tables already went through basis(); x may have no columns.
[[nodiscard]] Matrix predict_pairs(const Model& bound, const MatrixRef& x, const MatrixRef& z, const VectorRef& w);

/// The same for raw tables, not yet through basis().
[[nodiscard]] Matrix predict_linked(const Model& bound, const MatrixRef& x, const MatrixRef& z, const VectorRef& w);

/// Whether a parameter is an intercept: "intercept", or "OUTPUT:intercept" with several outputs.
[[nodiscard]] bool is_intercept(const std::string& name);

}  // namespace unshuffle
