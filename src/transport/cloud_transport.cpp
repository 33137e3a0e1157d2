#include "transport/cloud_transport.hpp"

#include <cmath>

#include "transport/cloud_nodes.hpp"

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
  const WeightedPoints &as_rows = turned_ ? features : responses, &as_columns = turned_ ? responses : features;
  rows_ = {PointCloud(as_rows.points, as_rows.weights), {}};
  columns_ = {PointCloud(as_columns.points, as_columns.weights), {}};
  if (options_.response_cost.size() > 0)
    (turned_ ? columns_ : rows_).own_cost = cloud(Side::response).from_rows(options_.response_cost);
  CloudReport report;
  for (const double stricter : {1.0, 1e-3, 0.0}) {
    put_nodes(epsilon, stricter * options_.accuracy);
    solve_on_nodes(epsilon);
    report = conclude(epsilon);
    if (!(report.compression_error > options_.accuracy)) break;
  }
  return report;
}

/// Rows that have costs of their own, which need not be smooth, stay as they are.
void CloudTransport::put_nodes(double epsilon, double accuracy) {
  solution_.reset();
  stage_.reset();
  const auto nodes = [&](const CloudSide& side, std::vector<Index>& from) -> CloudSide {
    from.clear();
    if (side.own_cost.size() > 0 || accuracy == 0) return side;
    CloudNodes made = nodes_of(side.points, epsilon, accuracy);
    from = std::move(made.from);
    return {std::move(made.points), {}};
  };
  row_nodes_ = nodes(rows_, row_from_);
  column_nodes_ = nodes(columns_, column_from_);
}

CloudStage::Accuracy CloudTransport::final_accuracy() const {
  constexpr double of_tolerance = 1e-3;
  return {.tolerance = options_.tolerance,
          .negligible = of_tolerance * options_.tolerance,
          .max_newton = options_.max_iterations};
}

void CloudTransport::solve_on_nodes(double epsilon) {
  if (last_potential_ && last_potential_->size() == columns_.points.size()) {
    Vector start = columns_.points.from_rows(*last_potential_) / epsilon;
    if (!column_from_.empty()) start = start(column_from_).eval();
    stage_ = std::make_unique<CloudStage>(row_nodes_, column_nodes_, options_.policies, epsilon);
    stage_->ascend(std::move(start), final_accuracy());
    if (stage_->outcome().converged) return;
  }
  // First quickly, then with more care, as for any cost (solver.cpp).
  descend(epsilon, 0.25, 1e-2, 0.04);
  if (!stage_->outcome().converged && !(stage_->outcome().marginal_error <= not_rounding))
    descend(epsilon, 0.6, 1e-6, 0.6);
}

/// From a smooth problem, where few points do, down to the final one.
void CloudTransport::descend(double epsilon, double factor, double tolerance, double top) {
  std::vector<double> stages{epsilon, epsilon};  // at the final one among few points first
  const double largest = largest_squared_distance(row_nodes_.points, 0, column_nodes_.points, 0);
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
      next_rows = coarser(row_nodes_, part);
      next_columns = coarser(column_nodes_, part);
      const Index few = next_rows.points.size() + next_columns.points.size();
      if (k == 1 && stage_ && 2 * few > row_nodes_.points.size() + column_nodes_.points.size()) continue;
    }
    const PointCloud& points = last ? column_nodes_.points : next_columns.points;
    Vector start =
        stage_ ? Vector(stage_->column_potential_at(points) * (before / now)) : Vector(Vector::Zero(points.size()));
    stage_.reset();
    coarse_rows = std::move(next_rows);
    coarse_columns = std::move(next_columns);
    stage_ = std::make_unique<CloudStage>(last ? row_nodes_ : coarse_rows, last ? column_nodes_ : coarse_columns,
                                          options_.policies, now);
    CloudStage::Accuracy accuracy = final_accuracy();
    if (!last) accuracy = {.tolerance = tolerance, .negligible = negligible_on_the_way, .certified = false};
    stage_->ascend(std::move(start), accuracy);
    before = now;
  }
}

CloudReport CloudTransport::conclude(double epsilon) {
  const DualOutcome& outcome = stage_->outcome();
  solution_.emplace(*stage_, CloudExtension::Clouds{rows_, columns_, row_from_.empty(), column_from_.empty()},
                    options_.policies);
  const double relative_entropy = -solution_->entropy(), mass = stage_->kernel().row_sums().sum();
  CloudReport report;
  report.transport_cost = solution_->transport_cost();
  report.value =
      report.transport_cost + epsilon * (relative_entropy - mass + stage_->rows().penalty(outcome.rows.log_ratio) +
                                         stage_->columns().penalty(outcome.columns.log_ratio));
  report.marginal_error = outcome.marginal_error + 2 * final_accuracy().negligible * mass;
  report.iterations = outcome.newton_steps + outcome.sinkhorn_steps;
  report.converged = outcome.converged;
  report.message = outcome.message;
  if (!std::isfinite(report.value)) {
    report.converged = false;
    report.message = "the plan's mass exceeds the largest double: costs are too far below zero for so small an epsilon";
  }
  const Vector& potential = solution_->potentials().columns;
  if (potential.allFinite() && solution_->potentials().rows.allFinite()) {
    last_potential_ = epsilon * columns_.points.to_rows(potential).col(0);
    report.compression_error = solution_->sampled_error(row_from_, column_from_);
  } else {
    last_potential_.reset();
  }
  return report;
}

Matrix CloudTransport::gradient(Side side, Objective objective) {
  return cloud(side).to_rows(by_row(side) ? solution_->row_forces(objective) : solution_->column_forces(objective));
}

Vector CloudTransport::potential(Side side) const {
  const PotentialsOfClouds& at = solution_->potentials();
  return cloud(side).to_rows(by_row(side) ? at.rows : at.columns);
}

Vector CloudTransport::log_ratio(Side side) const {
  const PotentialsOfClouds& at = solution_->potentials();
  return cloud(side).to_rows(by_row(side) ? at.row_log_ratio : at.column_log_ratio);
}

std::vector<CloudKernel::Entry> CloudTransport::strongest(Index most) const {
  std::vector<CloudKernel::Entry> found = solution_->strongest(most);
  for (CloudKernel::Entry& entry : found) {
    entry.row = rows_.points.order()[at(entry.row)];
    entry.column = columns_.points.order()[at(entry.column)];
    if (turned_) std::swap(entry.row, entry.column);
  }
  return found;
}

}  // namespace unshuffle::transport
