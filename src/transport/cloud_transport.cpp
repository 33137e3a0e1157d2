#include "transport/cloud_transport.hpp"

#include <cmath>

namespace unshuffle::transport {
namespace {

/// Parts up to this diagonal, in units of √ε, are single points in stages before the last; in the one right before
/// it, which has the final ε, finer ones.
constexpr double coarseness = 1, finer = 0.5;
/// Share of a row that stages before the last may leave out.
constexpr double negligible_on_the_way = 1e-5;
/// Above this, a failure to converge is not due to rounding.
constexpr double not_rounding = 1e-6;

CloudSide coarser(const CloudSide& side, double diagonal) {
  CoarseCloud made = transport::coarser(side.points, side.own_cost, diagonal);
  return {std::move(made.points), std::move(made.values)};
}

}  // namespace

CloudTransport::CloudTransport(Options options)
    : options_(std::move(options)), turned_(std::holds_alternative<Sampled>(options_.policies.columns)) {
  validate(options_.policies.rows, options_.policies.columns);
  if (turned_) std::swap(options_.policies.rows, options_.policies.columns);
}

CloudReport CloudTransport::solve(const WeightedPoints& responses, const WeightedPoints& features, double epsilon) {
  stage_.reset();
  adjoint_.reset();
  const WeightedPoints &as_rows = turned_ ? features : responses, &as_columns = turned_ ? responses : features;
  rows_ = {PointCloud(as_rows.points, as_rows.weights), {}};
  columns_ = {PointCloud(as_columns.points, as_columns.weights), {}};
  if (options_.response_cost.size() > 0)
    (turned_ ? columns_ : rows_).own_cost = cloud(Side::response).from_rows(options_.response_cost);
  bool solved = false;
  if (last_potential_ && last_potential_->size() == columns_.points.size()) {
    stage_ = std::make_unique<CloudStage>(rows_, columns_, options_.policies, epsilon);
    stage_->ascend(columns_.points.from_rows(*last_potential_) / epsilon,
                   {.tolerance = options_.tolerance, .max_newton = options_.max_iterations});
    solved = stage_->outcome().converged;
  }
  // First quickly, then with more care, as for any cost (solver.cpp).
  if (!solved) descend(epsilon, 0.25, 1e-2, 0.04);
  if (!stage_->outcome().converged && !(stage_->outcome().marginal_error <= not_rounding))
    descend(epsilon, 0.6, 1e-6, 0.6);
  return conclude(epsilon);
}

/// From a smooth problem, where few points do, down to the final one.
void CloudTransport::descend(double epsilon, double factor, double tolerance, double top) {
  std::vector<double> stages{epsilon, epsilon};  // at the final one among few points first
  const double largest = largest_squared_distance(rows_.points, 0, columns_.points, 0);
  while (stages.back() < top * largest) stages.push_back(stages.back() / factor);
  CloudSide coarse_rows, coarse_columns;  // of the stage before, and its ε
  double before = 0;
  stage_.reset();
  for (std::size_t k = stages.size(); k-- > 0;) {
    const double now = stages[k];
    const bool last = k == 0;
    CloudSide next_rows, next_columns;
    if (!last) {
      const double part = (k == 1 ? finer : coarseness) * std::sqrt(now);
      next_rows = coarser(rows_, part);
      next_columns = coarser(columns_, part);
      const Index few = next_rows.points.size() + next_columns.points.size();
      if (k == 1 && stage_ && 2 * few > rows_.points.size() + columns_.points.size()) continue;
    }
    const PointCloud& points = last ? columns_.points : next_columns.points;
    Vector start =
        stage_ ? Vector(stage_->column_potential_at(points) * (before / now)) : Vector(Vector::Zero(points.size()));
    stage_.reset();
    coarse_rows = std::move(next_rows);
    coarse_columns = std::move(next_columns);
    stage_ = std::make_unique<CloudStage>(last ? rows_ : coarse_rows, last ? columns_ : coarse_columns,
                                          options_.policies, now);
    CloudStage::Accuracy accuracy{.tolerance = options_.tolerance, .max_newton = options_.max_iterations};
    if (!last) accuracy = {.tolerance = tolerance, .negligible = negligible_on_the_way, .certified = false};
    stage_->ascend(std::move(start), accuracy);
    before = now;
  }
}

CloudReport CloudTransport::conclude(double epsilon) {
  const DualOutcome& outcome = stage_->outcome();
  const PotentialsOfClouds& at = stage_->potentials();
  const CloudKernel& kernel = stage_->kernel();
  kernel.entropy_sums(outcome.u, outcome.v, row_entropy_sums_, column_entropy_sums_);
  const double relative_entropy = -row_entropy_sums_.sum(), mass = kernel.row_sums().sum();
  CloudReport report;
  report.transport_cost =
      epsilon * (-relative_entropy + at.rows.dot(kernel.row_sums()) + at.columns.dot(kernel.column_sums()));
  report.value =
      report.transport_cost + epsilon * (relative_entropy - mass + stage_->rows().penalty(outcome.rows.log_ratio) +
                                         stage_->columns().penalty(outcome.columns.log_ratio));
  report.marginal_error = outcome.marginal_error + 2 * CloudStage::Accuracy{}.negligible * mass;
  report.iterations = outcome.newton_steps + outcome.sinkhorn_steps;
  report.converged = outcome.converged;
  report.message = outcome.message;
  if (!std::isfinite(report.value)) {
    report.converged = false;
    report.message = "the plan's mass exceeds the largest double: costs are too far below zero for so small an epsilon";
  }
  if (at.columns.allFinite())
    last_potential_ = epsilon * columns_.points.to_rows(at.columns).col(0);
  else
    last_potential_.reset();
  return report;
}

// docs/mathematics.md §3.1.
const CloudTransport::Adjoint& CloudTransport::adjoint() {
  if (adjoint_) return *adjoint_;
  const DualOutcome& outcome = stage_->outcome();
  const PotentialsOfClouds& at = stage_->potentials();
  const Curvature m1 = stage_->rows().curvature(outcome.rows.log_ratio, outcome.rows.multipliers);
  const Curvature m2 = stage_->columns().curvature(outcome.columns.log_ratio, outcome.columns.multipliers);
  const SystemSolution solution =
      stage_->solve_system(row_entropy_sums_ - m1.apply(at.rows), column_entropy_sums_ - m2.apply(at.columns));
  adjoint_ = Adjoint{solution.x.col(0), solution.y.col(0)};
  return *adjoint_;
}

Matrix CloudTransport::gradient(Side side, Objective objective) {
  const CloudKernel& kernel = stage_->kernel();
  const DualOutcome& outcome = stage_->outcome();
  const bool transport = objective == Objective::transport;
  const Adjoint zero{Vector::Zero(kernel.rows()), Vector::Zero(kernel.cols())};
  const Adjoint& of_plan = transport ? adjoint() : zero;
  const CloudKernel::WeightedPlan w{.u = outcome.u,
                                    .v = outcome.v,
                                    .constant = 1,
                                    .slope = transport ? 1.0 : 0.0,
                                    .p = of_plan.rows,
                                    .q = of_plan.columns};
  return cloud(side).to_rows(by_row(side) ? kernel.row_forces(w) : kernel.column_forces(w));
}

Vector CloudTransport::potential(Side side) const {
  return cloud(side).to_rows(by_row(side) ? stage_->potentials().rows : stage_->potentials().columns);
}

Vector CloudTransport::log_ratio(Side side) const {
  const DualOutcome& outcome = stage_->outcome();
  return cloud(side).to_rows(by_row(side) ? outcome.rows.log_ratio : outcome.columns.log_ratio);
}

std::vector<CloudKernel::Entry> CloudTransport::strongest(Index most) const {
  std::vector<CloudKernel::Entry> found = stage_->kernel().strongest(stage_->outcome().u, stage_->outcome().v, most);
  for (CloudKernel::Entry& entry : found) {
    entry.row = rows_.points.order()[at(entry.row)];
    entry.column = columns_.points.order()[at(entry.column)];
    if (turned_) std::swap(entry.row, entry.column);
  }
  return found;
}

}  // namespace unshuffle::transport
