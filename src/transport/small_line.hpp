// The transport problem between a few points on a line. Groups of ten rows come by the hundred thousand; what serves a
// million points, compression and bands, costs them ten times the work itself.
#pragma once

#include "transport/line_solver.hpp"

namespace unshuffle::transport {

/// Up to `most` points on either side with exact sums. Nothing is approximated.
class SmallLine {
 public:
  static constexpr Index most = 16;

  /// Positions and weights that sum to one.
  struct Points {
    const Vector& position;
    const Vector& weight;
  };

  /// From the last solution where there is one. Not converged: rounding is in the way, and others may find a way round.
  [[nodiscard]] LineReport solve(const Points& t, const Points& s, double epsilon, double tolerance);
  void forget() { v_.resize(0); }

  /// Potentials, in units of ε and against the weights.
  [[nodiscard]] const Vector& row_potential() const { return u_; }
  [[nodiscard]] const Vector& column_potential() const { return v_; }
  /// Derivatives of the entropic value in every t and s.
  [[nodiscard]] const Vector& row_gradient() const { return row_gradient_; }
  [[nodiscard]] const Vector& column_gradient() const { return column_gradient_; }
  /// Of the entropic value in the parameters behind t and s, as LineTransport::hessian; of the points last solved.
  [[nodiscard]] Matrix hessian(const Points& t, const Points& s, double epsilon, const Matrix& t_jacobian,
                               const Matrix& s_jacobian) const;

 private:
  Vector u_, v_, row_gradient_, column_gradient_;
};

}  // namespace unshuffle::transport
