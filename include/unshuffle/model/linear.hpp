// Models that are linear in their parameters: f = b + φ(x)·wx + ψ(z)·wz with fixed basis columns φ, ψ.
//
// `Linear` uses the columns as they are; `Spline` (spline.hpp) expands each of them first. The parameters of one output
// are the intercept (if any), the x coefficients, the z coefficients; several outputs follow one another. The
// intercept b lives on the feature side.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// Everything `Linear` and `Spline` share once the basis columns are known.
class LinearInBasis : public AdditiveModel {
 public:
  [[nodiscard]] Index parameters() const final { return per_output() * outputs_; }
  [[nodiscard]] std::vector<std::string> parameter_names() const final;
  [[nodiscard]] bool linear_in_parameters() const final { return true; }
  [[nodiscard]] bool intercept() const { return intercept_; }

  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef& w) const final;
  void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                      Vector& gradient) const final;
  [[nodiscard]] Matrix jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const final;

 protected:
  explicit LinearInBasis(bool intercept) : intercept_(intercept) {}

  /// Fixes the layout of the parameters: names of the basis columns of either side, and of the outputs.
  void lay_out(std::vector<std::string> x_columns, std::vector<std::string> z_columns,
               std::vector<std::string> outputs);

 private:
  [[nodiscard]] Index per_output() const { return (intercept_ ? 1 : 0) + x_count_ + z_count_; }
  [[nodiscard]] Index first(Side side) const { return (intercept_ ? 1 : 0) + (side == Side::response ? 0 : x_count_); }
  [[nodiscard]] Index count(Side side) const { return side == Side::response ? x_count_ : z_count_; }
  [[nodiscard]] bool has_intercept(Side side) const { return intercept_ && side == Side::feature; }

  bool intercept_;
  Index x_count_ = 0;
  Index z_count_ = 0;
  Index outputs_ = 0;
  std::vector<std::string> column_names_;
  std::vector<std::string> output_names_;
};

/// f = b + x·wx + z·wz, one equation per output.
class Linear final : public LinearInBasis {
 public:
  explicit Linear(bool intercept = true) : LinearInBasis(intercept) {}

  [[nodiscard]] std::string name() const override { return "linear"; }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override;

  /// The bound model from column names alone.
  [[nodiscard]] static std::unique_ptr<Model> restored(bool intercept, std::vector<std::string> x_names,
                                                       std::vector<std::string> z_names,
                                                       std::vector<std::string> y_names);
};

/// The given names, or prefix1, prefix2, ... when there are none.
[[nodiscard]] std::vector<std::string> names_or_default(const std::vector<std::string>& names, Index count,
                                                        const std::string& prefix);

}  // namespace unshuffle
