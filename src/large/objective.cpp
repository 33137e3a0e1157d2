#include "large/objective.hpp"

#include <cmath>

namespace unshuffle::large {

using transport::CellGrid;
using transport::CompressionRule;
using transport::LineCurvature;
using transport::Momentum;
using transport::NodeProblem;

namespace {

/// Errors of three compressions (pieces, lanes, everything) add up.
constexpr double estimate_margin = 0.03;

}  // namespace

void LargeObjective::PointsInPieces::move_to(const Vector& w) {
  current_ = current_ && (!moves_ || (w_.size() == w.size() && w_ == w));
  w_ = w;
}

void LargeObjective::PointsInPieces::compress(const CompressionRule& rule) {
  if (current_ && layout_.rule == rule) return;
  const Atoms atoms = passes_.compress(side_, w_, rule);
  layout_ = {atoms.range, rule};
  measure_ = atoms.compressed(rule);
  grid_ = CellGrid(atoms.range, rule);
  current_ = true;
}

LargeObjective::LargeObjective(SharedPasses& passes, const LargeRows& rows, bool response_parameters,
                               const EvaluatorOptions& options)
    : passes_(passes),
      rows_(rows),
      options_(options),
      solver_({.row_policy = options.response_side,
               .column_policy = options.feature_side,
               .tolerance = options.tolerance,
               .accuracy = estimate_margin * options.accuracy}),
      t_(passes, Side::response, response_parameters),
      s_(passes, Side::feature, true) {}

// A pass with boxes as wide as the line: only the range is of interest.
double LargeObjective::largest_cost(const Vector& w) {
  CompressionRule coarse;
  coarse.box_width = coarse.cell_width = std::numeric_limits<double>::max();
  coarse.order = coarse.grid_order = 1;
  t_.move_to(w);
  s_.move_to(w);
  t_.compress(coarse);
  s_.compress(coarse);
  const double apart = std::max(t_.range().high - s_.range().low, s_.range().high - t_.range().low);
  return apart * apart;
}

Evaluation LargeObjective::evaluate(const Vector& w, double epsilon, bool with_hessian) {
  t_.move_to(w);
  s_.move_to(w);
  if (t_.measure().nodes().size() == 0) (void)largest_cost(w);  // the solver wants to know the ranges first
  const transport::LineReport report = solver_.solve(t_, s_, epsilon);
  const double n = rows_.response_rows, m = rows_.feature_rows;
  Evaluation made;
  made.transport_cost = n * report.transport_cost;
  // The solver's value is against μ⊗ν; the evaluators' is against counting, see block_objective.cpp.
  made.objective = options_.objective == Objective::transport
                       ? made.transport_cost
                       : n * (report.value - epsilon * (std::log(n) + std::log(m)));
  made.marginal_error = report.marginal_error;
  made.compression_error = report.compression_error;
  made.inner_iterations = report.iterations;
  made.converged = report.converged;
  made.message = report.message;

  NodeProblem& nodes = solver_.nodes();
  std::unique_ptr<LineCurvature> curvature;
  if (with_hessian) curvature = std::make_unique<LineCurvature>(solver_, options_.objective);
  made.gradient = Vector::Zero(w.size());
  if (with_hessian) made.hessian = Matrix::Zero(w.size(), w.size());
  Momentum momentum;
  for (const Side side : {Side::response, Side::feature}) {
    const PointsInPieces& own = points(side);
    Matrix& moved = side == Side::response ? momentum.rows : momentum.columns;
    if (with_hessian) moved = Matrix::Zero(own.grid().grid().size(), w.size());
    if (!own.moves()) continue;
    Functions functions;
    functions.gradient = own.grid().series(nodes.evaluate(side, own.grid().grid(), options_.objective).gradient);
    if (with_hessian) functions.slope = own.grid().series(curvature->slope(side, own.grid().grid()));
    const Derivatives found = passes_.differentiate(side, w, own.layout(), functions);
    made.gradient += n * found.gradient;
    if (!with_hessian) continue;
    made.hessian += n * found.hessian;
    moved = own.grid().to_grid(found.moments);
  }
  if (with_hessian) made.hessian += n * curvature->reaction(t_.grid().grid(), s_.grid().grid(), momentum);
  return made;
}

double LargeObjective::matched_share() {
  const Vector ratio = solver_.nodes().evaluate(Side::response, t_.grid().grid(), Objective::entropic).log_ratio;
  return passes_.matched(Side::response, t_.w(), t_.layout(), t_.grid().series(ratio));
}

// Potentials were computed on a few nodes; summing the plan over all rows shows how well its marginals are met. Sampled
// at nodes, which lie where the rows lie.
double LargeObjective::measured_error() {
  constexpr Index samples = 8;
  double worst = 0;
  NodeProblem& nodes = solver_.nodes();
  for (const Side side : {Side::response, Side::feature}) {
    const Side other = side == Side::response ? Side::feature : Side::response;
    const Vector& position = points(side).measure().nodes().position;
    const Index count = std::min(samples, position.size());
    Vector chosen(count);
    for (Index k = 0; k < count; ++k) chosen[k] = position[(2 * k + 1) * position.size() / (2 * count)];
    const transport::SideValues own = nodes.evaluate(side, chosen, Objective::entropic);
    const CellGrid& grid = points(other).grid();
    const Matrix potential = grid.series(nodes.evaluate(other, grid.grid(), Objective::entropic).potential);
    const Vector sums =
        passes_.partner_sums(other, points(other).w(), points(other).layout(), potential, {chosen, nodes.epsilon()});
    const Vector ratio = own.log_ratio.array().exp();
    const Vector found = sums.array() * own.potential.array().exp();
    worst = std::max(worst, ((found - ratio).array().abs() / ratio.array().max(ratio.mean())).maxCoeff());
  }
  return worst;
}

}  // namespace unshuffle::large
