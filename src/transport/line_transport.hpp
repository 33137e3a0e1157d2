// Transport between points on a line at any number of points: compress both sides, solve on the nodes, return to
// the points by interpolation. Keeps its last solution as a start for the next one.
#pragma once

#include "transport/line_solver.hpp"

namespace unshuffle::transport {

/// Both sides in memory.
class LineTransport {
 public:
  explicit LineTransport(const LineOptions& options);

  /// Weights may be empty (equal); otherwise positive, summing to one.
  LineReport solve(const VectorRef& t, const VectorRef& row_weights, const VectorRef& s,
                   const VectorRef& column_weights, double epsilon);
  /// The next solve starts cold.
  void forget();

  /// Derivative of the objective in every t (or s), at unit weight: multiply by the point's weight.
  [[nodiscard]] Vector gradient(Side side, Objective objective);
  /// Potential of every point, in units of ε and against the weights, and log of its mass ratio.
  [[nodiscard]] Vector potential(Side side);
  [[nodiscard]] Vector log_ratio(Side side);

  /// Hessian of the objective in the parameters behind t and s, given the weighted Jacobians' columns one by one.
  /// Does not contain the part of ∂²t/∂w², which needs only gradient().
  [[nodiscard]] Matrix hessian(const MatrixRef& t_jacobian, const VectorRef& row_weights, const MatrixRef& s_jacobian,
                               const VectorRef& column_weights, Objective objective);

 private:
  [[nodiscard]] const CompressedMeasure& measure(Side side) const { return side == Side::response ? t_ : s_; }
  /// The solver's name for a side.
  [[nodiscard]] Side laid(Side side) const {
    return (side == Side::response) != turned_ ? Side::response : Side::feature;
  }

  bool turned_;  ///< s are the solver's rows: sampled sums are always there.
  LineSolver solver_;
  CompressedMeasure t_, s_;
};

}  // namespace unshuffle::transport
