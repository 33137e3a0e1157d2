// Maximises the dual of the lower problem for any kernel and any pair of marginal policies, and solves the linear
// systems that its curvature defines (docs/mathematics.md §2.6 and §3.1).
//
// For fixed column potentials v the row side has a closed-form solution (SideTerms::scale), which leaves a smooth
// concave function of v alone, the semi-dual
//   D(v) = φ₁ - ΣΓ + φ₂(v),      ∇D = ν r₂(v) - Γᵀ1,
//   -∇²D = S = A₂ - Γᵀ A₁⁻¹ Γ,   A₁ = diag(Γ1) + εM₁,   A₂ = diag(Γᵀ1) + εM₂.
// Sinkhorn's column step is a fixed-point step on v; Newton's step solves S dv = ∇D. Both start from the same
// evaluation, and the loop below takes Newton's step whenever every column already holds some mass.
//
// S is the Schur complement of the symmetric system of the adjoint,
//   H = [A₁ Γ; Γᵀ A₂],
// so the factor of the last Newton step also serves the hypergradient and the Hessian. The low-rank parts of the ball's
// εM enter by Woodbury's identity. When both sides fix the mass, H has the null vector (1,-1): potentials are
// determined up to a constant. A ball's own column of ones represents exactly that constant and is then omitted.
//
// A Kernel holds Γ in whatever form suits the cost and offers
//   rows(), cols(), epsilon(), row_base(), column_base()   potentials already inside the stored cost, in units of ε
//   evaluate(v) -> ℓ, set_rows(u), column_log_sums(u)       with u, v relative to the base
//   row_sums(), column_sums(), apply(q), apply_transposed(p)
//   factor(inverse A₁, A₂, ridge) -> bool, solve(B)          S and its factor
//   factor_lasts()                                          whether it remains usable after a small move of the plan
//   prepare_products(inverse A₁, A₂), iterate(b, share)      S⁻¹b by conjugate gradients; either is false where a
//   factor
//                                                            is faster, and the solver then factors
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include "transport/side.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle::transport {

struct DualOptions {
  double tolerance = 1e-9;  ///< Σ|column sums - demanded|; rows are met exactly after every evaluation.
  int max_newton = 100;
  int max_sinkhorn = 200;  ///< Column steps, taken where Newton's model fails or where they pay.
  /// Column steps first, as long as each leaves less than this share of the error; 0: none. For kernels whose column
  /// steps are cheap.
  double sinkhorn_pays = 0;
};

struct DualOutcome {
  Ratio rows, columns;
  Vector u, v;  ///< Relative to the kernel's base, in units of ε.
  double marginal_error = 0;
  std::vector<double> history;
  int sinkhorn_steps = 0;
  int newton_steps = 0;
  bool converged = false;
  std::string message;
};

/// Solution of H [x; y] = [f; g] and, per side, l = core⁻¹ borderᵀ x of the ball's low-rank part.
struct SystemSolution {
  Matrix x, y;
  Matrix row_border, column_border;
};

template <class Kernel>
class DualSolver {
 public:
  DualSolver(Kernel& kernel, const SideTerms& rows, const SideTerms& columns)
      : kernel_(kernel), rows_(rows), columns_(columns) {}

  /// Evaluates the plan at v and returns its marginal error; maximise() continues from there.
  double begin(Vector v) {
    now_ = {};
    now_.v = columns_.is_free() ? Vector(-kernel_.column_base()) : std::move(v);
    dual_ = evaluate(now_);
    return now_.marginal_error;
  }

  /// Row potentials at the point of begin(), relative to the base.
  [[nodiscard]] const Vector& row_potential() const { return now_.u; }

  /// Ascends from the point of begin() until the marginals hold. On return the kernel holds Γ.
  DualOutcome maximise(const DualOptions& options) {
    DualOutcome& now = now_;
    now.history.push_back(now.marginal_error);
    factor_is_near_ = false;
    iterations_pay_ = true;
    bool sinkhorn_pays = options.sinkhorn_pays > 0;
    while (now.marginal_error > options.tolerance && now.newton_steps < options.max_newton &&
           now.sinkhorn_steps < options.max_sinkhorn) {
      stop_if_asked();
      // Newton's model fails if a column is empty, and with free rows one column step is the solution.
      const double before = now.marginal_error;
      const bool sinkhorn_paid = sinkhorn_pays;
      bool stepped = false;
      if (!sinkhorn_pays && !rows_.is_free() && !some_column_is_empty(now)) {
        ++now.newton_steps;
        stepped = newton_step(now, options.tolerance);
        // Quadratic convergence: a step from here ends so close that its factor is still usable there.
        factor_is_near_ = stepped && !iterating_ && before < 1e-3 && kernel_.factor_lasts();
      }
      if (!stepped) {
        column_step(now);
        dual_ = evaluate(now);
        ++now.sinkhorn_steps;
        factor_is_near_ = false;
        sinkhorn_pays = sinkhorn_pays && now.marginal_error < options.sinkhorn_pays * before;
      }
      now.history.push_back(now.marginal_error);
      const bool stuck = !sinkhorn_paid && !stepped && before < 1e-6 && now.marginal_error > 0.9 * before;
      if (!std::isfinite(now.marginal_error) || stuck) break;
    }
    conclude(now, options);
    return now;
  }

  /// Solves H [x; y] = [f; g] at the current plan, by conjugate gradients or with a factor of S from here or nearby,
  /// refined against the plan itself.
  SystemSolution solve_system(const DualOutcome& at, const Matrix& f, const Matrix& g) {
    set_system(at);
    // Attempted every time, so that the answer does not depend on what was asked before.
    if (iterations_pay_ && prepare_iterations(adjoint_share)) {
      auto [x, y] = solve_once(f, g);
      if (refine(f, g, x, y)) return with_borders(std::move(x), std::move(y));
    }
    iterating_ = false;
    iterated_ = true;
    const bool nearby = factor_is_near_ && row_curvature_.border.cols() + column_curvature_.border.cols() == 0;
    if (!nearby) factor_here(at);
    auto [x, y] = solve_once(f, g);
    if (!refine(f, g, x, y) && nearby) {  // the plan has moved too far since
      factor_here(at);
      (void)refine(f, g, x, y);
    }
    return with_borders(std::move(x), std::move(y));
  }

 private:
  using Pair = std::pair<Matrix, Matrix>;

  /// The residual that conjugate gradients leave in one pass of the adjoint; two passes leave 1e-14.
  static constexpr double adjoint_share = 1e-7;

  SystemSolution with_borders(Matrix x, Matrix y) const {
    Matrix of_rows = low_rank_coefficients(row_curvature_, x), of_columns = low_rank_coefficients(column_curvature_, y);
    return {std::move(x), std::move(y), std::move(of_rows), std::move(of_columns)};
  }

  // Where two balls reach their boundary together H is nearly singular, and marginals with an error of δ do not
  // determine directions with less curvature than that. A ridge of δ bounds the answer along them; refinement removes
  // its effect everywhere else.
  void factor_here(const DualOutcome& at) {
    if (!factor(std::max(1e-13, at.marginal_error))) (void)factor(1e-9);
    factor_is_near_ = kernel_.factor_lasts();
  }

  /// Refines a solution of H [x; y] = [f; g] while that helps; returns whether the residual is small.
  bool refine(const Matrix& f, const Matrix& g, Matrix& x, Matrix& y) {
    constexpr double little = 1e-12;
    // A pass with a factor is cheap; one of conjugate gradients is not taken for the last digits.
    const double enough = iterating_ ? 1e-13 : 1e-15;
    const double scale = std::max(f.template lpNorm<Eigen::Infinity>(), g.template lpNorm<Eigen::Infinity>());
    double least = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < 8; ++pass) {
      auto [rf, rg] = residual(f, g, x, y);
      const double left = std::max(rf.template lpNorm<Eigen::Infinity>(), rg.template lpNorm<Eigen::Infinity>());
      const bool helped = left <= 0.5 * least;
      least = std::min(least, left);
      if (left <= enough * scale || !helped || !iterated_) break;
      auto [dx, dy] = solve_once(rf, rg);
      x += dx;
      y += dy;
    }
    return least <= little * scale && iterated_;
  }

  /// Γ, marginals and the semi-dual at `now.v`.
  double evaluate(DualOutcome& now) {
    Vector log_sums = kernel_.evaluate(now.v);
    now.rows = rows_.scale(log_sums, kernel_.row_base());
    now.u = now.rows.log_ratio - log_sums;
    kernel_.set_rows(now.u);
    const Vector& sums = kernel_.column_sums();
    if (columns_.is_free()) {
      now.columns.log_ratio = (sums.array().max(1e-300) / columns_.weights().array().max(1e-300)).log();
      gap_ = Vector::Zero(sums.size());
    } else {
      now.columns = columns_.respond(now.v, kernel_.column_base());
      gap_ = columns_.weights().cwiseProduct(now.columns.log_ratio.array().exp().matrix()) - sums;
    }
    now.marginal_error = gap_.template lpNorm<1>();
    return now.rows.dual - kernel_.row_sums().sum() + now.columns.dual;
  }

  /// Whether some column holds far less mass than it should, although it should hold a fair share of its weight.
  [[nodiscard]] bool some_column_is_empty(const DualOutcome& now) const {
    const Eigen::ArrayXd ratio = now.columns.log_ratio.array().exp();
    const Eigen::ArrayXd demanded = ratio * columns_.weights().array();
    return (demanded > 0 && ratio > 1e-3 && kernel_.column_sums().array() < 1e-3 * demanded).any();
  }

  void column_step(DualOutcome& now) {
    Vector log_sums = kernel_.column_log_sums(now.u);
    Ratio answer = columns_.scale(log_sums, kernel_.column_base());
    now.v = answer.log_ratio - log_sums;
  }

  /// By conjugate gradients where these are faster, with a factor where they are not.
  bool newton_step(DualOutcome& now, double tolerance) {
    set_system(now);
    // Solved no better than its quadratic model deserves, and than the tolerance needs.
    const double error = now.marginal_error, share = std::min(0.1, std::max(error, 0.3 * tolerance / error));
    if (iterations_pay_ && prepare_iterations(share)) {
      if (step_along(now, newton_direction())) return true;
      iterations_pay_ = false;
    }
    if (!factor(1e-13) && !factor(1e-9) && !factor(1e-5)) return false;
    return step_along(now, newton_direction());
  }

  Vector newton_direction() { return solve_once(Matrix::Zero(kernel_.rows(), 1), gap_).second; }

  bool step_along(DualOutcome& now, const Vector& direction) {
    DualOutcome start = now;
    const double start_dual = dual_, slope = gap_.dot(direction);
    if (!iterated_ || !direction.allFinite() || !(slope >= 0)) return false;
    // The dual is concave: along the direction its slope falls from `slope` through zero at the best step, which lies
    // between the longest step known to fall short and the shortest known to overshoot. A full step that falls short is
    // dominated by rounding.
    double step = 1, short_of = 0, beyond = 1;
    const double noise = 1e-15 * (1 + start.rows.size + start.columns.size);
    for (int trial = 0; trial < 80; ++trial) {
      now.v = start.v + step * direction;
      dual_ = evaluate(now);
      const double slope_here = gap_.dot(direction);
      if (std::isfinite(dual_) && std::isfinite(slope_here)) {
        // When the gain is below the rounding of the dual, the derivatives decide.
        const bool ascends = dual_ >= start_dual + 1e-4 * step * slope;
        const bool flattens = std::abs(slope_here) <= 0.9 * slope || now.marginal_error <= 0.9 * start.marginal_error;
        if (step * slope > 100 * noise ? ascends : flattens) return true;
      }
      (slope_here > 0 ? short_of : beyond) = step;
      if (short_of == 1) break;
      step = 0.5 * (short_of + beyond);
    }
    now = start;
    dual_ = evaluate(now);
    return false;
  }

  void conclude(DualOutcome& now, const DualOptions& options) const {
    now.converged = now.marginal_error <= options.tolerance;
    if (now.converged) return;
    if (!std::isfinite(now.marginal_error))
      now.message = "the plan overflowed: costs or potentials are not finite";
    else if (now.newton_steps >= options.max_newton || now.sinkhorn_steps >= options.max_sinkhorn)
      now.message = fmt::format("{} Newton and {} Sinkhorn steps left a marginal error of {:.2e}, {:.2e} was asked for",
                                now.newton_steps, now.sinkhorn_steps, now.marginal_error, options.tolerance);
    else
      now.message = fmt::format(
          "marginal error stays at {:.2e}, {:.2e} was asked for: no step lowers it, as happens when costs are so "
          "large relative to epsilon that rounding dominates",
          now.marginal_error, options.tolerance);
  }

  /// H at the current plan.
  void set_system(const DualOutcome& at) {
    row_curvature_ = rows_.curvature(at.rows.log_ratio, at.rows.multipliers);
    column_curvature_ = columns_.curvature(at.columns.log_ratio, at.columns.multipliers);
    drop_gauge_column();
    // Rows and columns that a policy has almost given up stay in the system with negligible mass.
    constexpr double given_up = 1e-30;
    a1_ = (kernel_.row_sums() + row_curvature_.diagonal).cwiseMax(given_up * rows_.weights());
    a2_ = (kernel_.column_sums() + column_curvature_.diagonal).cwiseMax(given_up * columns_.weights());
    singular_ = rows_.fixes_mass() && columns_.fixes_mass() && row_curvature_.diagonal.isZero(0) &&
                column_curvature_.diagonal.isZero(0);
  }

  void invert_a1() {
    inverse_a1_ =
        rows_.is_free() ? Vector::Zero(a1_.size()) : Vector((a1_.array() > 0).select(a1_.array().inverse(), 0));
  }

  /// Prepares solve_once() from the current system by conjugate gradients, each to a residual of `share`. Balls, whose
  /// low-rank parts take several solutions of full accuracy, are left to the factor.
  bool prepare_iterations(double share) {
    if (columns_.is_free() || row_curvature_.border.cols() + column_curvature_.border.cols() > 0) return false;
    invert_a1();
    if (!kernel_.prepare_products(inverse_a1_, a2_)) return false;
    border_ = stacked_border();
    iterating_ = iterated_ = true;
    share_ = share;
    return true;
  }

  /// Prepares solve_once() from the current system by a factor.
  bool factor(double ridge) {
    iterating_ = false;
    iterated_ = true;
    invert_a1();
    if (!columns_.is_free() && !kernel_.factor(inverse_a1_, a2_, ridge)) return false;
    border_ = stacked_border();
    if (border_.cols() > 0) {
      auto [x, y] = solve_block(border_.topRows(kernel_.rows()), border_.bottomRows(kernel_.cols()));
      border_solution_.resize(border_.rows(), border_.cols());
      border_solution_ << x, y;
      small_.compute(core_ - border_.transpose() * border_solution_);
    }
    return true;
  }

  void drop_gauge_column() {
    if (!rows_.fixes_mass() || !columns_.fixes_mass()) return;
    Curvature& side = column_curvature_.border.cols() > 0 ? column_curvature_ : row_curvature_;
    if (side.border.cols() == 0) return;
    const Index keep = side.border.cols() - 1;
    side.border = side.border.rightCols(keep).eval();
    side.core = side.core.bottomRightCorner(keep, keep).eval();
  }

  Matrix stacked_border() {
    const Index k1 = row_curvature_.border.cols(), k2 = column_curvature_.border.cols();
    Matrix border = Matrix::Zero(kernel_.rows() + kernel_.cols(), k1 + k2);
    border.topLeftCorner(kernel_.rows(), k1) = row_curvature_.border;
    border.bottomRightCorner(kernel_.cols(), k2) = column_curvature_.border;
    core_ = Matrix::Zero(k1 + k2, k1 + k2);
    core_.topLeftCorner(k1, k1) = row_curvature_.core;
    core_.bottomRightCorner(k2, k2) = column_curvature_.core;
    return border;
  }

  /// The block system without low-rank parts, by the Schur complement.
  Pair solve_block(const Matrix& f, const Matrix& g) {
    if (columns_.is_free()) return {inverse_a1_.asDiagonal() * f, Matrix::Zero(g.rows(), g.cols())};
    Matrix scaled = inverse_a1_.asDiagonal() * f;
    Matrix y = g - kernel_.apply_transposed(scaled);
    solve_schur(y);
    Matrix x = scaled - inverse_a1_.asDiagonal() * kernel_.apply(y);
    return {x, y};
  }

  void solve_schur(Matrix& b) {
    if (!iterating_) return kernel_.solve(b);
    for (Index k = 0; k < b.cols(); ++k) {
      Vector column = b.col(k);
      // Constants are null vectors of S: what rounding leaves of them in b has no solution and would mislead the steps.
      if (singular_) column -= (column.sum() / a2_.sum()) * a2_;
      iterated_ = kernel_.iterate(column, share_) && iterated_;
      b.col(k) = column;
    }
  }

  Pair solve_once(const Matrix& f, const Matrix& g) {
    auto [x, y] = solve_block(f, g);
    if (border_.cols() > 0) {
      Matrix stacked(f.rows() + g.rows(), f.cols());
      stacked << x, y;
      stacked += border_solution_ * small_.solve(border_.transpose() * stacked);
      x = stacked.topRows(f.rows());
      y = stacked.bottomRows(g.rows());
    }
    return {x, y};
  }

  Pair residual(const Matrix& f, const Matrix& g, const Matrix& x, const Matrix& y) {
    Matrix rf = f, rg = g;
    if (rows_.is_free()) {
      rf.setZero();
    } else {
      rf -= kernel_.apply(y) + a1_.asDiagonal() * x;
      if (row_curvature_.border.cols() > 0) rf += row_curvature_.border * low_rank_coefficients(row_curvature_, x);
    }
    if (columns_.is_free()) {
      rg.setZero();
    } else {
      rg -= kernel_.apply_transposed(x) + a2_.asDiagonal() * y;
      if (column_curvature_.border.cols() > 0)
        rg += column_curvature_.border * low_rank_coefficients(column_curvature_, y);
    }
    return {rf, rg};
  }

  static Matrix low_rank_coefficients(const Curvature& side, const Matrix& x) {
    if (side.border.cols() == 0) return Matrix(0, x.cols());
    return side.core.ldlt().solve(side.border.transpose() * x);
  }

  Kernel& kernel_;
  const SideTerms& rows_;
  const SideTerms& columns_;
  DualOutcome now_;
  double dual_ = 0;
  Vector gap_;
  Curvature row_curvature_, column_curvature_;  // H as it is
  Vector a1_, a2_;
  bool singular_ = false;  // S 1 = 0
  bool factor_is_near_ = false;
  bool iterations_pay_ = true;                // until they took longer than a factor
  bool iterating_ = false, iterated_ = true;  // solve_once() by conjugate gradients, and whether all of them converged
  double share_ = 0;
  Vector inverse_a1_;  // H as it was factored
  Matrix border_, border_solution_, core_;
  Eigen::FullPivLU<Matrix> small_;
};

}  // namespace unshuffle::transport
