// The transport problem between two measures on a line, solved on their nodes, and its solution as functions of
// position: potentials, ratios, gradients and their derivatives at any t or s.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/band_kernel.hpp"
#include "transport/compress.hpp"
#include "transport/dual.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// The solution at positions of one side, per unit of weight. d is the distance to the other side.
struct SideValues {
  Vector log_ratio;        ///< log r(t).
  Vector potential;        ///< u(t), in units of ε.
  Vector gradient;         ///< G(t): derivative of the objective when unit weight at t moves.
  Vector potential_slope;  ///< u'(t).
  Vector log_ratio_slope;  ///< (log r)'(t).
  Vector gradient_slope;   ///< G'(t) of the entropic value with the other side held fixed.
};

/// A direction in which the points of both sides move, as momentum (weight × velocity) on positions.
struct Momentum {
  Matrix rows, columns;  ///< One column per direction.
};

/// A row's own cost per mass, in addition to the distance, in units of ε. Hessians omit its slope, so rows that have
/// one must not move.
using RowCost = std::function<double(double)>;

class NodeProblem {
 public:
  NodeProblem(LineMeasure rows, LineMeasure columns, const MarginalPolicy& row_policy,
              const MarginalPolicy& column_policy, double epsilon, RowCost row_cost = {});
  // The solver holds references to the kernel and the sides.
  NodeProblem(const NodeProblem&) = delete;
  NodeProblem& operator=(const NodeProblem&) = delete;

  /// Marginal error at column potentials v (total, in units of ε); solve() continues from there.
  double begin(const VectorRef& v);
  void solve(const DualOptions& options);
  [[nodiscard]] const DualOutcome& outcome() const { return outcome_; }

  [[nodiscard]] double epsilon() const { return epsilon_; }
  [[nodiscard]] const LineMeasure& measure(Side side) const { return side == Side::response ? rows_ : columns_; }
  [[nodiscard]] const Vector& potential(Side side) const { return side == Side::response ? u_ : v_; }

  /// <C, Γ>.
  [[nodiscard]] double transport_cost() const { return transport_cost_; }
  /// <C, Γ> + ε Σ Γ (log(Γ/(μ⊗ν)) - 1) + R₁ + R₂.
  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] double mass() const { return mass_; }

  /// Column potentials that continue this solution to other positions (a half step from the rows).
  [[nodiscard]] Vector continued_column_potential(const VectorRef& positions, double epsilon) const;

  /// The objective's gradient and the rest of SideValues at ascending positions of a side.
  [[nodiscard]] SideValues evaluate(Side side, const VectorRef& positions, Objective objective);

  /// Part of the entropic value's Hessian that comes from the reaction of the plan to moving points:
  /// (directions × directions), from momenta on the given positions.
  [[nodiscard]] Matrix reaction(const Vector& row_positions, const Vector& column_positions, const Momentum& momentum);

  /// For every box of a side: how wrong its quadrature of `order` nodes can make a row (or column) sum of the other
  /// side, relative to that sum.
  [[nodiscard]] Vector quadrature_error(Side side, const std::vector<Box>& boxes, int order) const;
  /// For every node of a side: how wrong interpolation from `order` Chebyshev points can be in a cell of the given
  /// width there, relative to the size of what is interpolated.
  [[nodiscard]] Vector interpolation_error(Side side, const Vector& cell_width, int order) const;
  /// For every node of a side, the standard deviation of its partner's position under the plan.
  [[nodiscard]] Vector partner_deviation(Side side) const;
  /// For every node of a side, |(log r)'|, or 0 where r hardly counts.
  [[nodiscard]] Vector ratio_steepness(Side side) const;

 private:
  struct Half;  // one side as seen from the other
  struct MovingPoints;

  [[nodiscard]] Half half(Side side) const;
  void prepare_adjoint();
  /// evaluate() for a few positions from `first` on.
  void evaluate_some(const Half& h, const VectorRef& positions, const Windows& windows, Index first, bool through_plan,
                     SideValues& at) const;
  /// How the gradient at points of a side reacts when both sides' points move, given the change of the potentials at
  /// the other side's nodes and l of this one's.
  [[nodiscard]] Matrix react(Side side, const MovingPoints& own, const MovingPoints& other, const Matrix& source_change,
                             const Matrix& l) const;
  [[nodiscard]] Vector log_sum_slope(Side side) const;
  [[nodiscard]] Vector potential_slope(Side side) const;
  [[nodiscard]] const Ratio& ratio(Side side) const {
    return side == Side::response ? outcome_.rows : outcome_.columns;
  }

  LineMeasure rows_, columns_;
  double epsilon_;
  RowCost row_cost_;
  SideTerms row_terms_, column_terms_;
  BandKernel kernel_;
  DualSolver<BandKernel> solver_;
  DualOutcome outcome_;
  Vector u_, v_;
  Vector entropy_by_row_, entropy_by_column_;
  BandKernel::DistanceSums distances_;
  double transport_cost_ = 0, value_ = 0, mass_ = 0;
  bool adjoint_ready_ = false;
  SystemSolution adjoint_;
  Vector row_border_of_u_, column_border_of_v_;
};

}  // namespace unshuffle::transport
