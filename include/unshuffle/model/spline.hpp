// A generalised additive model: a smooth curve per column, linear in its parameters.
//
// Every column gets a cubic B-spline basis whose K interior knots are quantiles of that column; ties make fewer knots.
// The B-splines of a column sum to one, so the first is dropped and the others are centred on the table they were
// bound to: K + 3 basis columns per feature and one intercept for all. Beyond the smallest and the largest value seen a
// curve continues as a straight line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// The centred B-spline basis of one column.
class SplineColumn {
 public:
  /// Learns knots and centring; throws BadData naming the column when it is constant.
  SplineColumn(const VectorRef& values, int interior_knots, const std::string& name);
  /// From breakpoints (smallest value, interior knots, largest value) and the means to subtract.
  SplineColumn(std::vector<double> breakpoints, std::vector<double> means);

  [[nodiscard]] Index functions() const { return static_cast<Index>(breakpoints_.size()) + 1; }
  [[nodiscard]] const std::vector<double>& breakpoints() const { return breakpoints_; }
  [[nodiscard]] const std::vector<double>& means() const { return means_; }

  /// Centred basis at every value: N×functions().
  [[nodiscard]] Matrix expand(const VectorRef& values) const;

 private:
  [[nodiscard]] Matrix expand_uncentred(const VectorRef& values) const;

  std::vector<double> breakpoints_;
  std::vector<double> means_;
};

class Spline final : public LinearInBasis {
 public:
  /// knots: interior knots per column, at least 0; more allow wigglier curves at one parameter per column each.
  explicit Spline(int knots = 5, bool intercept = true);

  [[nodiscard]] std::string name() const override { return "spline:" + std::to_string(knots_); }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override;
  [[nodiscard]] Matrix basis(Side side, const MatrixRef& rows) const override;

  /// Knots and centring as numbers, and the bound model back from them.
  [[nodiscard]] std::vector<double> state() const;
  [[nodiscard]] static std::unique_ptr<Model> restored(int knots, bool intercept,
                                                       const std::vector<std::string>& x_names,
                                                       const std::vector<std::string>& z_names,
                                                       const std::vector<std::string>& y_names,
                                                       const std::vector<double>& state);

 private:
  void name_basis(const std::vector<std::string>& x_names, const std::vector<std::string>& z_names,
                  const std::vector<std::string>& y_names);

  int knots_;
  std::vector<SplineColumn> x_columns_;
  std::vector<SplineColumn> z_columns_;
};

}  // namespace unshuffle
