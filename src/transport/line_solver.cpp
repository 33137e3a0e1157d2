#include "transport/line_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace unshuffle::transport {
namespace {

// Widths in units of √ε at which, with twelve nodes each, a smooth problem with comparable sides is solved to 1e-10 and
// better; see docs/fast-path.md for the measurement. Where a problem needs more, boxes and cells are narrowed until
// their estimated error is below the tolerance.
constexpr double box_width_in_root_epsilon = 2.0;
constexpr double cell_width_in_root_epsilon = 0.5;
constexpr int most_refinements = 8;

/// At these widths each additional node of a box, or point of a cell, gains about one digit.
int order_for(double accuracy) { return std::clamp(static_cast<int>(std::ceil(1 - std::log10(accuracy))), 4, 14); }

MarginalPolicy scaled(const MarginalPolicy& policy, double factor) {
  if (const auto* kl = std::get_if<KullbackLeibler>(&policy)) return KullbackLeibler{kl->strength * factor};
  return policy;  // a ball's entropy is in units of ε already
}

/// Lowers limits so that from one position to the next they grow by at most `growth` times the distance.
void grade(Vector& limit, const Vector& position, double growth) {
  for (Index k = 1; k < limit.size(); ++k)
    limit[k] = std::min(limit[k], limit[k - 1] + growth * (position[k] - position[k - 1]));
  for (Index k = limit.size() - 1; k > 0; --k)
    limit[k - 1] = std::min(limit[k - 1], limit[k] + growth * (position[k] - position[k - 1]));
}

/// Makes a rule narrow where limits are below its widths.
void narrow(CompressionRule& rule, const Vector& position, const Vector& box_limit, const Vector& cell_limit) {
  rule.narrow_at.clear();
  rule.box_factor.clear();
  rule.cell_factor.clear();
  for (Index node = 0; node < position.size(); ++node) {
    if (box_limit[node] >= rule.box_width && cell_limit[node] >= rule.cell_width) continue;
    rule.narrow_at.push_back(position[node]);
    rule.box_factor.push_back(box_limit[node] / rule.box_width);
    rule.cell_factor.push_back(cell_limit[node] / rule.cell_width);
  }
}

}  // namespace

void LineSolver::compress(const Sides& sides, Side side, double epsilon) {
  const double unit = options_.compress ? std::sqrt(epsilon) : 0;
  CompressionRule& own = rule(side);
  own.box_width = box_width_in_root_epsilon * unit;
  own.cell_width = cell_width_in_root_epsilon * unit;
  own.order = own.grid_order = order_for(options_.accuracy);
  sides.of(side).compress(own);
}

void LineSolver::forget() {
  nodes_.reset();
  row_rule_ = {};
  column_rule_ = {};
}

// Exact marginals start from the matching at ε = 0, which is close. Other policies leave points unmatched that the
// matching pairs, so they start from a larger ε, as does any solve that did not converge from its start.
LineReport LineSolver::solve(LinePoints& rows, LinePoints& columns, double epsilon) {
  const Sides sides{rows, columns};
  const bool exact =
      std::holds_alternative<Exact>(options_.row_policy) && std::holds_alternative<Exact>(options_.column_policy);
  if (!nodes_ && !exact) return descend(sides, epsilon);
  LineReport report = solve_at(sides, epsilon, options_.tolerance);
  if (report.converged) return report;
  forget();
  return descend(sides, epsilon);
}

LineReport LineSolver::descend(const Sides& sides, double epsilon) {
  constexpr double stage_factor = 4, stage_tolerance = 1e-3;
  const Range t = sides.rows.range(), s = sides.columns.range();
  const double apart = std::max(t.high - s.low, s.high - t.low);
  std::vector<double> stages;
  for (double stage = stage_factor * epsilon; stage < 0.1 * apart * apart; stage *= stage_factor)
    stages.push_back(stage);
  int iterations = 0;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
    iterations += solve_at(sides, *stage, stage_tolerance).iterations;
  LineReport report = solve_at(sides, epsilon, options_.tolerance);
  report.iterations += iterations;
  return report;
}

LineReport LineSolver::solve_at(const Sides& sides, double epsilon, double tolerance) {
  compress(sides, Side::response, epsilon);
  compress(sides, Side::feature, epsilon);
  LineReport report;
  for (int round = 0;; ++round) {
    auto next = std::make_unique<NodeProblem>(sides.rows.measure().nodes(), sides.columns.measure().nodes(),
                                              options_.row_policy, options_.column_policy, epsilon, options_.row_cost);
    begin(sides, *next);
    next->solve({.tolerance = tolerance});
    nodes_ = std::move(next);
    report.iterations += nodes_->outcome().newton_steps + nodes_->outcome().sinkhorn_steps;
    report.compression_error = 0;
    const bool rows_changed = narrow_where_needed(sides.rows, Side::response, report.compression_error);
    const bool columns_changed = narrow_where_needed(sides.columns, Side::feature, report.compression_error);
    if ((!rows_changed && !columns_changed) || round == most_refinements) break;
    if (rows_changed) compress(sides, Side::response, epsilon);
    if (columns_changed) compress(sides, Side::feature, epsilon);
  }
  const DualOutcome& outcome = nodes_->outcome();
  report.transport_cost = nodes_->transport_cost();
  report.value = nodes_->value();
  report.mass = nodes_->mass();
  report.marginal_error = outcome.marginal_error;
  report.converged = outcome.converged;
  report.message = outcome.message;
  return report;
}

void LineSolver::begin(const Sides& sides, NodeProblem& next) const {
  // A continued solution with this large an error is useless: the matching at ε = 0 may be closer.
  constexpr double still_near = 0.05;
  const LineMeasure& columns = sides.columns.measure().nodes();
  auto monotone = [&] { return monotone_potentials(sides.rows.measure().nodes(), columns, next.epsilon()); };
  if (!nodes_) {
    next.begin(monotone());
    return;
  }
  const Vector continued = nodes_->continued_column_potential(columns.position, next.epsilon());
  const double error = next.begin(continued);
  if (error > still_near && next.begin(monotone()) > error) next.begin(continued);
}

// Boxes are too wide where the estimated error of their quadrature is too large. Cells are too wide where potentials
// change faster than on the scale √ε: a conditional plan of deviation σ, in the worst case two atoms 2σ apart, puts the
// nearest complex singularity of its log-sum πε/(4σ) off the line: interpolation needs cells well below that, and boxes
// not far above it (where the plan splits, the slopes at the nodes can miss how fast the integrand changes). A ball's
// ratio changes from "matched" to "unmatched" within about one unit of log r, which neither may step over. Widths grow
// only gradually away from a narrow place, because its singularities are close to its neighbours too.
bool LineSolver::narrow_where_needed(const LinePoints& own, Side side, double& worst) {
  constexpr double cell_in_epsilon_over_deviation = 0.35, box_in_epsilon_over_deviation = 1.5;
  constexpr double unit_of_ratio = 1.4;  // equivalent to this much ε over deviation
  constexpr double cell_growth = 0.3, box_growth = 1;
  if (own.exact()) return false;
  CompressionRule& rule = this->rule(side);
  const std::vector<Box>& boxes = own.measure().boxes();
  const Vector& position = own.measure().nodes().position;
  const Eigen::ArrayXd deviation = nodes_->partner_deviation(side), steepness = nodes_->ratio_steepness(side);
  const Eigen::ArrayXd scale = (nodes_->epsilon() / deviation).min(unit_of_ratio / steepness);
  Vector box_limit = (box_in_epsilon_over_deviation * scale).min(rule.box_width);
  Vector cell_limit = (cell_in_epsilon_over_deviation * scale).min(rule.cell_width);
  bool too_wide = false;
  const Vector error = nodes_->quadrature_error(side, boxes, rule.order);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    if (boxes[b].width == 0) continue;
    const double seen = std::max(error[static_cast<Index>(b)], 1e-300);
    worst = std::max(worst, seen);
    too_wide = too_wide || seen > options_.accuracy;
    // The error goes with the width to the power 2p; aim an order below the tolerance, by a factor of 4 at most.
    const double change = std::clamp(std::pow(0.1 * options_.accuracy / seen, 0.5 / rule.order), 0.25, 4.0);
    const double limit = boxes[b].width * (seen > options_.accuracy ? change : std::max(change, 1.0));
    const Index first = boxes[b].first, count = boxes[b].last - boxes[b].first;
    box_limit.segment(first, count) = box_limit.segment(first, count).cwiseMin(limit);
    cell_limit.segment(first, count) =
        cell_limit.segment(first, count).cwiseMin(limit * rule.cell_width / rule.box_width);
  }
  const Vector cell_width = own.interpolated_width();
  const Vector missed = nodes_->interpolation_error(side, cell_width, rule.grid_order);
  for (Index k = 0; k < position.size(); ++k) {
    worst = std::max(worst, missed[k]);
    if (missed[k] <= options_.accuracy) continue;
    too_wide = true;
    cell_limit[k] = std::min(
        cell_limit[k],
        cell_width[k] * std::clamp(std::pow(0.1 * options_.accuracy / missed[k], 1.0 / rule.grid_order), 0.1, 1.0));
  }
  grade(box_limit, position, box_growth);
  grade(cell_limit, position, cell_growth);
  // A margin between the width requested and the width rejected, so that a slightly different plan needs no change.
  constexpr double margin = 1.25;
  for (const Box& box : boxes)
    for (Index node = box.first; node < box.last; ++node)
      too_wide = too_wide || box.width > margin * box_limit[node] || cell_width[node] > margin * cell_limit[node];
  if (too_wide) narrow(rule, position, box_limit, cell_limit);
  return too_wide;
}

// The entropic value's Hessian V is exact. The transport cost is F = V - dV/dλ when ε and every penalty grow by the
// common factor λ (the envelope theorem turns that derivative into the entropy and penalty terms), so its Hessian is
// that of V minus a derivative in one scalar, taken by central differences on the same nodes.
LineCurvature::LineCurvature(const LineSolver& solver, Objective objective) {
  NodeProblem& nodes = solver.nodes();
  terms_.push_back({&nodes, 1});
  if (objective == Objective::entropic) return;
  constexpr double step = 2e-3;
  const LineOptions& options = solver.options();
  const LineMeasure &rows = nodes.measure(Side::response), &columns = nodes.measure(Side::feature);
  for (const double sign : {1.0, -1.0}) {
    const double factor = 1 + sign * step;
    auto moved = std::make_unique<NodeProblem>(rows, columns, scaled(options.row_policy, factor),
                                               scaled(options.column_policy, factor), nodes.epsilon() * factor,
                                               options.row_cost);
    moved->begin(nodes.continued_column_potential(columns.position, moved->epsilon()));
    moved->solve({.tolerance = std::min(options.tolerance, 1e-11)});
    terms_.push_back({moved.get(), -sign / (2 * step)});
    scaled_.push_back(std::move(moved));
  }
}

Vector LineCurvature::slope(Side side, const Vector& positions) {
  Vector sum = Vector::Zero(positions.size());
  for (const auto& [nodes, factor] : terms_)
    sum += factor * nodes->evaluate(side, positions, Objective::entropic).gradient_slope;
  return sum;
}

Matrix LineCurvature::reaction(const Vector& row_positions, const Vector& column_positions, const Momentum& momentum) {
  Matrix sum = Matrix::Zero(momentum.rows.cols(), momentum.rows.cols());
  for (const auto& [nodes, factor] : terms_) sum += factor * nodes->reaction(row_positions, column_positions, momentum);
  return sum;
}

}  // namespace unshuffle::transport
