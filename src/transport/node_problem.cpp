#include "transport/node_problem.hpp"

#include <Eigen/Cholesky>
#include <cmath>

namespace unshuffle::transport {

/// One side as target and the other as source, so that every formula is written once.
struct NodeProblem::Half {
  const SideTerms& terms;
  const Multipliers& multipliers;
  const LineMeasure& sources;
  const Vector& source_potential;
  const Matrix& source_adjoint;    // Q of the sources
  const Matrix& adjoint_border;    // l of the targets' adjoint P
  const Vector& potential_border;  // l of the targets' potential
  const RowCost* own_cost;         // of the targets, if they pay any
};

/// Moving points of one side: their positions, the solution there, and their momentum.
struct NodeProblem::MovingPoints {
  const Vector& positions;
  const SideValues& values;
  const Matrix& momentum;
};

namespace {

/// Positions evaluated at a time, so that the exponentials that give ℓ are still available when u is known.
constexpr Index together = 64;

/// core⁻¹ borderᵀ x with all border columns.
Vector border_coefficients(const Curvature& curvature, const Vector& x) {
  if (curvature.border.cols() == 0) return Vector(0);
  return curvature.core.ldlt().solve(curvature.border.transpose() * x);
}

/// B·l where l may lack the leading entry that the gauge sets to zero.
Vector border_times(const Matrix& border, const VectorRef& l) {
  if (l.size() == 0) return Vector::Zero(border.rows());
  return border.rightCols(l.size()) * l;
}

Eigen::ArrayXd exponents(double t, const LineMeasure& sources, const Vector& potential, Index begin, Index count,
                         double epsilon) {
  return potential.segment(begin, count).array() -
         (t - sources.position.segment(begin, count).array()).square() / epsilon;
}

/// A position's conditional plan π over its window of sources.
struct Conditional {
  Index begin = 0;
  Eigen::ArrayXd exponent, plan;
  double log_sum = 0;  ///< ℓ.

  void find(double t, const LineMeasure& sources, const Vector& potential, Index from, Index to, double epsilon) {
    begin = from;
    exponent = exponents(t, sources, potential, from, to - from, epsilon);
    const double largest = exponent.maxCoeff();
    plan = (exponent - largest).exp() * sources.weight.segment(from, to - from).array();
    const double sum = plan.sum();
    plan /= sum;
    log_sum = largest + std::log(sum);
  }
};

struct Drive {
  Matrix on_marginal, on_gradient;
};

/// ∫K(x, y)(slope(y) + 2d/ε) dm(y) and ∫K(2d(slope + 2d/ε) - 2) dm at targets x with potential a, sources y.
template <class MovingPoints>
Drive drive(const Vector& x, const Vector& a, const MovingPoints& sources, double epsilon) {
  const Vector& y = sources.positions;
  const SideValues& source = sources.values;
  const Matrix& m = sources.momentum;
  Drive sum{Matrix::Zero(x.size(), m.cols()), Matrix::Zero(x.size(), m.cols())};
  const LineMeasure all{y, Vector::Ones(y.size())};
  const Windows windows = windows_of(x, all, source.potential, epsilon);
  for (Index i = 0; i < x.size(); ++i) {
    const Index begin = windows.begin[static_cast<std::size_t>(i)];
    const Index size = windows.end[static_cast<std::size_t>(i)] - begin;
    const Eigen::ArrayXd d = x[i] - y.segment(begin, size).array();
    const Eigen::ArrayXd k = (exponents(x[i], all, source.potential, begin, size, epsilon) + a[i]).exp();
    const Eigen::ArrayXd tilt = source.potential_slope.segment(begin, size).array() + 2 * d / epsilon;
    sum.on_marginal.row(i) = (k * tilt).matrix().transpose() * m.middleRows(begin, size);
    sum.on_gradient.row(i) = (k * (2 * d * tilt - 2)).matrix().transpose() * m.middleRows(begin, size);
  }
  return sum;
}

/// core⁻¹h of constraints that move with their points; subtracts its effect from a right-hand side.
template <class MovingPoints>
Matrix move_constraint(const SideTerms& terms, const Ratio& ratio, const MovingPoints& points, Matrix& rhs) {
  const Curvature curvature = terms.curvature(ratio.log_ratio, ratio.multipliers);
  if (curvature.border.cols() == 0) return Matrix(0, points.momentum.cols());
  const SideValues& at = points.values;
  const Vector ratio_slope = at.log_ratio.array().exp() * at.log_ratio_slope.array();
  const Matrix h =
      terms.unit_border(at.log_ratio, ratio.multipliers).transpose() * (ratio_slope.asDiagonal() * points.momentum);
  Matrix shift = curvature.core.ldlt().solve(h);
  rhs -= curvature.border * shift;
  return shift;
}

/// l, of which the system's solution may lack the leading row that the gauge sets to zero.
Matrix without_shift(const Matrix& border_change, const Matrix& shift) {
  Matrix l = Matrix::Zero(shift.rows(), shift.cols());
  if (shift.rows() > 0) l.bottomRows(border_change.rows()) = border_change;
  return l - shift;
}

}  // namespace

NodeProblem::NodeProblem(LineMeasure rows, LineMeasure columns, const MarginalPolicy& row_policy,
                         const MarginalPolicy& column_policy, double epsilon, RowCost row_cost)
    : rows_(std::move(rows)),
      columns_(std::move(columns)),
      epsilon_(epsilon),
      row_cost_(std::move(row_cost)),
      row_terms_(row_policy, rows_.weight, epsilon, row_cost_ ? Vector(rows_.position.unaryExpr(row_cost_)) : Vector()),
      column_terms_(column_policy, columns_.weight, epsilon),
      kernel_(rows_, columns_, epsilon),
      solver_(kernel_, row_terms_, column_terms_) {}

double NodeProblem::begin(const VectorRef& v) {
  kernel_.set_base(Vector::Zero(rows_.size()), v);
  const double error = solver_.begin(Vector::Zero(v.size()));
  // Potentials this large leave too few digits for the increments of the ascent, unless both are in the base.
  constexpr double large = 1e5;
  if (!(v.lpNorm<Eigen::Infinity>() > large)) return error;
  kernel_.set_base(solver_.row_potential(), v);
  return solver_.begin(Vector::Zero(v.size()));
}

void NodeProblem::solve(const DualOptions& options) {
  outcome_ = solver_.maximise(options);
  u_ = outcome_.u + kernel_.row_base();
  v_ = outcome_.v + kernel_.column_base();
  adjoint_ready_ = false;
  kernel_.entropy_sums(outcome_.u, outcome_.v, entropy_by_row_, entropy_by_column_);
  distances_ = kernel_.distance_sums();
  mass_ = kernel_.row_sums().sum();
  const double relative_entropy = -entropy_by_row_.sum();
  transport_cost_ = epsilon_ * (-relative_entropy + u_.dot(kernel_.row_sums()) + v_.dot(kernel_.column_sums()));
  value_ = transport_cost_ + epsilon_ * (relative_entropy - mass_ + row_terms_.penalty(outcome_.rows.log_ratio) +
                                         column_terms_.penalty(outcome_.columns.log_ratio));
}

Vector NodeProblem::continued_column_potential(const VectorRef& positions, double epsilon) const {
  const Vector log_sums = transport::log_sums(positions, rows_, u_ * (epsilon_ / epsilon), epsilon);
  return column_terms_.extend(log_sums, outcome_.columns.multipliers) - log_sums;
}

// The adjoint (docs/mathematics.md §3.1), centred on the potentials: with p = ξ + εP, q = ζ + εQ and
// e = C/ε - u - v, the system [A₁ Γ; Γᵀ A₂][p; q] = [(C∘Γ)1; (C∘Γ)ᵀ1] becomes
//   [A₁ Γ; Γᵀ A₂][P; Q] = [(e∘Γ)1 - εM₁u; (e∘Γ)ᵀ1 - εM₂v]   and   W = Γ(1 - e + P + Q),
// in which no large cost cancels.
void NodeProblem::prepare_adjoint() {
  if (adjoint_ready_) return;
  const Curvature m1 = row_terms_.curvature(outcome_.rows.log_ratio, outcome_.rows.multipliers);
  const Curvature m2 = column_terms_.curvature(outcome_.columns.log_ratio, outcome_.columns.multipliers);
  adjoint_ = solver_.solve_system(outcome_, entropy_by_row_ - m1.apply(u_), entropy_by_column_ - m2.apply(v_));
  row_border_of_u_ = border_coefficients(m1, u_);
  column_border_of_v_ = border_coefficients(m2, v_);
  adjoint_ready_ = true;
}

NodeProblem::Half NodeProblem::half(Side side) const {
  if (side == Side::response)
    return {row_terms_, outcome_.rows.multipliers, columns_,         v_,
            adjoint_.y, adjoint_.row_border,       row_border_of_u_, row_cost_ ? &row_cost_ : nullptr};
  return {column_terms_,          outcome_.columns.multipliers, rows_,  u_, adjoint_.x,
          adjoint_.column_border, column_border_of_v_,          nullptr};
}

// docs/mathematics.md §4.3. At a position t let π be its conditional plan, π_q ∝ ν_q exp(v_q - d²/ε) with d = t - s_q.
// Then ℓ is π's log normaliser, u = log r - ℓ, and per unit of weight at t, with W/μ = r π (1 - e + P + Q),
//   entropic value:  G = r·2<d>,
//   transport cost:  G = 2r[(1 + P)<d> - <e d> + <Q d>],
// where the row equation of the adjoint gives P(t)(1 + k) = <e> - <Q> + k(B l_P - u + B l_u), k the side's compliance.
// At fixed multipliers d(log r) = -k du and d(log r) = du + dℓ, ℓ' = -2<d>/ε, so
//   u' = -ℓ'/(1 + k),   (log r)' = ℓ' k/(1 + k),   G' = r[2 + 2u'<d> - 4<d²>/ε]  (entropic).
SideValues NodeProblem::evaluate(Side side, const VectorRef& positions, Objective objective) {
  const bool through_plan = objective == Objective::transport;
  if (through_plan) prepare_adjoint();
  const Half h = half(side);
  const Index count = positions.size();
  const Windows windows = windows_of(positions, h.sources, h.source_potential, epsilon_);
  SideValues at;
  for (Vector* values :
       {&at.log_ratio, &at.potential, &at.gradient, &at.potential_slope, &at.log_ratio_slope, &at.gradient_slope})
    values->resize(count);
#pragma omp parallel for schedule(static) if (count > 64 * together)
  for (Index first = 0; first < count; first += together) evaluate_some(h, positions, windows, first, through_plan, at);
  return at;
}

void NodeProblem::evaluate_some(const Half& h, const VectorRef& positions, const Windows& windows, Index first,
                                bool through_plan, SideValues& at) const {
  const Index here = std::min(together, positions.size() - first);
  std::vector<Conditional> conditionals(static_cast<std::size_t>(here));
  Vector log_sums(here);
  for (Index i = 0; i < here; ++i) {
    const auto k = static_cast<std::size_t>(first + i);
    Conditional& one = conditionals[static_cast<std::size_t>(i)];
    one.find(positions[first + i], h.sources, h.source_potential, windows.begin[k], windows.end[k], epsilon_);
    log_sums[i] = one.log_sum;
  }
  Vector sums = log_sums;
  if (h.own_cost != nullptr) sums -= positions.segment(first, here).unaryExpr(*h.own_cost);
  const Vector log_ratio = h.terms.extend(sums, h.multipliers);
  const Vector k = h.terms.compliance(log_ratio, h.multipliers);
  const Vector potential = log_ratio - log_sums;
  Vector pull = Vector::Zero(here);  // k(B l_P - u + B l_u), the policy's term in the adjoint's row equation
  if (through_plan) {
    const Matrix border = h.terms.unit_border(log_ratio, h.multipliers);
    pull = k.cwiseProduct(border_times(border, h.adjoint_border.col(0)) - potential +
                          border_times(border, h.potential_border));
  }
  at.log_ratio.segment(first, here) = log_ratio;
  at.potential.segment(first, here) = potential;
  Eigen::ArrayXd d, moment;
  for (Index i = 0; i < here; ++i) {
    const auto& [begin, entry, plan, log_sum] = conditionals[static_cast<std::size_t>(i)];  // plan: π
    const double r = std::exp(log_ratio[i]), stiff = h.terms.is_free() ? 0 : 1 / (1 + k[i]);
    const Index to = first + i;
    d = positions[to] - h.sources.position.segment(begin, plan.size()).array();
    moment = plan * d;
    const double mean = moment.sum(), square = (moment * d).sum();
    const double log_sum_slope = -2 * mean / epsilon_;
    at.potential_slope[to] = -log_sum_slope * stiff;
    at.log_ratio_slope[to] = log_sum_slope * (1 - stiff);
    at.gradient_slope[to] = r * (2 + 2 * at.potential_slope[to] * mean - 4 * square / epsilon_);
    at.gradient[to] = 2 * r * mean;
    if (through_plan) {
      const auto q = h.source_adjoint.col(0).segment(begin, plan.size()).array();
      const double u = potential[i];
      const double p = stiff * (pull[i] - (plan * (entry + u + q)).sum());
      at.gradient[to] = 2 * r * (moment * (1 + u + p + entry + q)).sum();
    }
  }
}

// docs/mathematics.md §4.5. When points move, the potentials change as functions: δu(t), δv(s). Linearising the row
// equation at any t,
//   r(1 + k) δu + ∫K δv dν - r k B l = -∫∂_s K(t,s) dm(s),   K = exp(u(t) + v(s) - d²/ε),  ∂_s K = K (v'(s) + 2d/ε),
// with m the momentum of the columns, and the same for columns. For a ball the constraints move with the points too:
//   core·l = borderᵀδu - h,   h = ∫B r' dm.
// The gradient reacts by  δG(t) = ∫K C_t (δu + δv) dν + ∫∂_s(K C_t) dm,  C_t = 2d,  ∂_s(K C_t) = K(2d(v' + 2d/ε) - 2).
// The Hessian's reaction part is Σ over both sides of <momentum, δG>. Tested against finite differences.
Matrix NodeProblem::reaction(const Vector& row_positions, const Vector& column_positions, const Momentum& momentum) {
  const SideValues at_rows = evaluate(Side::response, row_positions, Objective::entropic);
  const SideValues at_columns = evaluate(Side::feature, column_positions, Objective::entropic);
  const MovingPoints rows{row_positions, at_rows, momentum.rows};
  const MovingPoints columns{column_positions, at_columns, momentum.columns};
  // Right-hand sides on the nodes.
  Matrix f = -(rows_.weight.asDiagonal() * drive(rows_.position, u_, columns, epsilon_).on_marginal);
  Matrix g = -(columns_.weight.asDiagonal() * drive(columns_.position, v_, rows, epsilon_).on_marginal);
  const Matrix row_shift = move_constraint(row_terms_, outcome_.rows, rows, f);
  const Matrix column_shift = move_constraint(column_terms_, outcome_.columns, columns, g);
  const SystemSolution change = solver_.solve_system(outcome_, f, g);
  const Matrix row_reaction =
      react(Side::response, rows, columns, change.y, without_shift(change.row_border, row_shift));
  const Matrix column_reaction =
      react(Side::feature, columns, rows, change.x, without_shift(change.column_border, column_shift));
  Matrix hessian = momentum.rows.transpose() * row_reaction + momentum.columns.transpose() * column_reaction;
  return 0.5 * (hessian + hessian.transpose());
}

// δG at the positions of a side; computed per unit of r first, because r itself may underflow.
Matrix NodeProblem::react(Side side, const MovingPoints& own, const MovingPoints& other, const Matrix& source_change,
                          const Matrix& l) const {
  const Half h = half(side);
  const Vector& x = own.positions;
  const SideValues& at = own.values;
  const Vector minus_log_sums = at.potential - at.log_ratio;
  const auto [on_marginal, on_gradient] = drive(x, minus_log_sums, other, epsilon_);
  const Vector k = h.terms.compliance(at.log_ratio, h.multipliers);
  const Matrix border = h.terms.unit_border(at.log_ratio, h.multipliers);
  const Matrix from_border = k.asDiagonal() * (border * l);
  const Windows windows = windows_of(x, h.sources, h.source_potential, epsilon_);
  Matrix change_of_gradient = on_gradient;
  for (Index i = 0; i < x.size(); ++i) {
    const Index begin = windows.begin[static_cast<std::size_t>(i)];
    const Index size = windows.end[static_cast<std::size_t>(i)] - begin;
    const Eigen::ArrayXd d = x[i] - h.sources.position.segment(begin, size).array();
    const Eigen::ArrayXd plan =
        (exponents(x[i], h.sources, h.source_potential, begin, size, epsilon_) + minus_log_sums[i]).exp() *
        h.sources.weight.segment(begin, size).array();
    const Eigen::RowVectorXd from_sources = plan.matrix().transpose() * source_change.middleRows(begin, size);
    Eigen::RowVectorXd change = Eigen::RowVectorXd::Zero(source_change.cols());
    if (!h.terms.is_free()) change = (from_border.row(i) - on_marginal.row(i) - from_sources) / (1 + k[i]);
    change_of_gradient.row(i) += 2 * (plan * d).sum() * change;
    change_of_gradient.row(i) += 2 * (plan * d).matrix().transpose() * source_change.middleRows(begin, size);
    change_of_gradient.row(i) *= std::exp(at.log_ratio[i]);
  }
  return change_of_gradient;
}

// docs/mathematics.md §4.4. Seen from a position t of the other side, the box contributes the share f of t's sum, and
// over the box log K(t, ·)
// has a slope v'(s) + 2d/ε, largest at one of its ends; with κ that slope times half the width, the integrand is at
// worst like e^{κy} on [-1, 1]. A p-point Gauss rule loses what a polynomial of degree k = 2p misses of it, its
// Chebyshev coefficient I_k(κ) ≈ exp(√(k² + κ²) - k asinh(k/κ)), against an integral of e^κ/κ. The box's error is the
// largest of f times that ratio over all t.
Vector NodeProblem::quadrature_error(Side side, const std::vector<Box>& boxes, int order) const {
  const double degree = 2 * order;
  auto relative_error = [&](double kappa) {
    if (!(kappa > 0)) return 0.0;
    const double missed = std::sqrt(degree * degree + kappa * kappa) - degree * std::asinh(degree / kappa) - kappa;
    return std::min(1.0, std::exp(missed) * std::max(kappa, 1.0));
  };
  const bool by_row = side == Side::response;
  const LineMeasure& own = measure(side);
  const LineMeasure& seen_from = measure(by_row ? Side::feature : Side::response);
  const Vector& sums = by_row ? kernel_.column_sums() : kernel_.row_sums();
  const Vector slope = potential_slope(side);
  Vector error = Vector::Zero(static_cast<Index>(boxes.size()));
  auto note = [&](Index b, Index target, double mass) {
    const Box& box = boxes[static_cast<std::size_t>(b)];
    const double share = sums[target] > 0 ? mass / sums[target] : 0;
    if (!(share > error[b])) return;  // no error exceeds its share
    auto steepness = [&](Index j) {
      return std::abs(slope[j] + 2 * (seen_from.position[target] - own.position[j]) / epsilon_);
    };
    const double kappa = 0.5 * box.width * std::max(steepness(box.first), steepness(box.last - 1));
    error[b] = std::max(error[b], share * relative_error(kappa));
  };
  if (by_row) {
    Vector mass;
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      if (boxes[b].width == 0) continue;
      const Index from = kernel_.window(boxes[b].first).first, to = kernel_.window(boxes[b].last - 1).second;
      mass.setZero(to - from);
      for (Index i = boxes[b].first; i < boxes[b].last; ++i)
        mass.segment(kernel_.window(i).first - from, kernel_.row(i).size()) += kernel_.row(i).matrix();
      for (Index j = from; j < to; ++j) note(static_cast<Index>(b), j, mass[j - from]);
    }
    return error;
  }
  std::size_t first_box = 0;
  for (Index i = 0; i < rows_.size(); ++i) {
    const auto [from, to] = kernel_.window(i);
    while (boxes[first_box].last <= from) ++first_box;
    for (std::size_t b = first_box; b < boxes.size() && boxes[b].first < to; ++b) {
      if (boxes[b].width == 0) continue;
      const Index low = std::max(from, boxes[b].first), high = std::min(to, boxes[b].last);
      note(static_cast<Index>(b), i, kernel_.row(i).segment(low - from, high - low).sum());
    }
  }
  return error;
}

// Moving by half a cell from a node changes the share f of a partner by a factor e^κ, κ = |d - <d>| width/ε, so what is
// interpolated holds f e^{κy}; a polynomial of degree q misses about f I_q(κ) ≤ f (κ/2)^q/q! e^{κ²/(4(q+1))} of it.
Vector NodeProblem::interpolation_error(Side side, const Vector& cell_width, int order) const {
  const bool by_row = side == Side::response;
  const double q = order, log_factorial = std::lgamma(q + 1);
  const Eigen::ArrayXd sums = (by_row ? kernel_.row_sums() : kernel_.column_sums()).array().max(1e-300);
  const Eigen::ArrayXd mean = (by_row ? distances_.row_first : distances_.column_first).array() / sums;
  const Eigen::ArrayXd log_sums = sums.log();
  Eigen::ArrayXd largest = Eigen::ArrayXd::Constant(sums.size(), -1e300);
  Eigen::ArrayXd d, half_kappa_squared, missed;
  for (Index i = 0; i < rows_.size(); ++i) {
    const auto [first, last] = kernel_.window(i);
    const Index count = last - first;
    d = rows_.position[i] - columns_.position.segment(first, count).array();
    if (by_row)
      half_kappa_squared = ((d - mean[i]) * (0.5 * cell_width[i] / epsilon_)).square();
    else
      half_kappa_squared =
          ((d - mean.segment(first, count)) * (0.5 / epsilon_) * cell_width.segment(first, count).array()).square();
    missed = kernel_.row(i).max(1e-300).log() + 0.5 * q * half_kappa_squared.max(1e-300).log() - log_factorial +
             half_kappa_squared / (q + 1);
    if (by_row)
      largest[i] = missed.maxCoeff() - log_sums[i];
    else
      largest.segment(first, count) = largest.segment(first, count).max(missed - log_sums.segment(first, count));
  }
  return largest.min(0).exp();
}

// ℓ' at the nodes: with the plan available no exponential is needed (see evaluate() for the formulas).
Vector NodeProblem::log_sum_slope(Side side) const {
  const bool by_row = side == Side::response;
  const Eigen::ArrayXd sums = by_row ? kernel_.row_sums() : kernel_.column_sums();
  const Eigen::ArrayXd first = by_row ? distances_.row_first : Vector(-distances_.column_first);
  return (sums > 0).select(-2 / epsilon_ * first / sums.max(1e-300), 0);
}

Vector NodeProblem::potential_slope(Side side) const {
  const SideTerms& terms = side == Side::response ? row_terms_ : column_terms_;
  if (terms.is_free()) return Vector::Zero(measure(side).size());
  return -log_sum_slope(side).array() / (1 + terms.compliance(ratio(side).log_ratio, ratio(side).multipliers).array());
}

Vector NodeProblem::partner_deviation(Side side) const {
  const bool by_row = side == Side::response;
  const Eigen::ArrayXd sums = by_row ? kernel_.row_sums() : kernel_.column_sums();
  const Eigen::ArrayXd first = by_row ? distances_.row_first : distances_.column_first;
  const Eigen::ArrayXd second = by_row ? distances_.row_second : distances_.column_second;
  const Eigen::ArrayXd mass = sums.max(1e-300);
  // Not -0, as by rounding where all partners are at one position: lengths are divided by it.
  return (sums > 0).select((second / mass - (first / mass).square()).max(0).sqrt().abs(), 0);
}

Vector NodeProblem::ratio_steepness(Side side) const {
  const Eigen::ArrayXd& log_ratio = ratio(side).log_ratio.array();
  const Eigen::ArrayXd slope = (log_sum_slope(side) + potential_slope(side)).cwiseAbs();
  constexpr double hardly_any = -25;  // mass that is negligible at the accuracy of the compression
  return (log_ratio > hardly_any).select(slope, 0);
}

}  // namespace unshuffle::transport
