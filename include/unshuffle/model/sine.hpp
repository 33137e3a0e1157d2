// The paper's nonlinear model f(x, z; w) = Σ_k sin([x, z]_k w_k): one output, one parameter per column, no intercept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

class Sine final : public AdditiveModel {
 public:
  [[nodiscard]] std::string name() const override { return "sine"; }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override;
  [[nodiscard]] Index parameters() const override { return static_cast<Index>(names_.size()); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return names_; }

  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef& w) const override;
  void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                      Vector& gradient) const override;
  [[nodiscard]] Matrix jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const override;
  void add_curvature_part(Side side, const MatrixRef& rows, const VectorRef& w, const VectorRef& cotangent,
                          Matrix& hessian) const override;

  /// The bound model from column names alone.
  [[nodiscard]] static std::unique_ptr<Model> restored(const std::vector<std::string>& x_names,
                                                       const std::vector<std::string>& z_names);

 private:
  [[nodiscard]] Index first(Side side) const { return side == Side::response ? 0 : x_count_; }

  Index x_count_ = 0;
  std::vector<std::string> names_;
};

}  // namespace unshuffle
