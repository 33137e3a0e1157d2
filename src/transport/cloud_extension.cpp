#include "transport/cloud_extension.hpp"

#include <cmath>

#include "transport/log_sums.hpp"

namespace unshuffle::transport {
namespace {

constexpr double given_up = 1e-30;  // as in DualSolver::set_system()
constexpr Index sampled = 64;
/// Forces may leave out this share of a row.
constexpr double negligible = 1e-12;

/// Potentials of points whose partners' are known.
void extend(const SideTerms& side, const CloudSide& points, const Vector& sums, const Multipliers& multipliers,
            Vector& log_ratio, Vector& potential) {
  log_ratio = side.extend(points.own_cost.size() > 0 ? Vector(sums - points.own_cost) : sums, multipliers);
  potential = side.is_free() ? Vector(Vector::Zero(sums.size())) : Vector(log_ratio - sums);
}

/// core⁻¹ borderᵀ x, with what the solution of the system adds to it.
Vector border_coefficients(const Curvature& m, const Vector& x, const Matrix& of_system) {
  if (m.border.cols() == 0) return {};
  Vector c = m.core.ldlt().solve(m.border.transpose() * x);
  c.tail(of_system.rows()) += of_system.col(0);
  return c;
}

/// The adjoint at points from the sums Σ Γ(e - other side's adjoint): a row of the system, solved for its own.
Vector extended_adjoint(const SideTerms& side, const Vector& sums, const Vector& potential, const Vector& log_ratio,
                        const Multipliers& multipliers, const Vector& border) {
  if (side.is_free()) return Vector::Zero(sums.size());
  const Curvature m = side.curvature(log_ratio, multipliers);
  Vector left = sums - m.diagonal.cwiseProduct(potential);
  if (border.size() > 0) left += m.border * border;
  const Vector mass = side.weights().array() * log_ratio.array().exp();
  return left.cwiseQuotient((mass + m.diagonal).cwiseMax(given_up * side.weights()));
}

PointCloud sample(const PointCloud& cloud) {
  const Index count = std::min(cloud.size(), sampled);
  std::vector<Index> rows;
  for (Index k = 0; k < count; ++k) rows.push_back((2 * k + 1) * cloud.size() / (2 * count));
  return {cloud.points()(rows, Eigen::all), cloud.weights()(rows)};
}

double largest_difference(const PointCloud& all, const Vector& of_all, const PointCloud& nodes,
                          const std::vector<Index>& from, const PointCloud& seen_from, double epsilon) {
  if (from.empty()) return 0;
  const Vector exact = log_sums(seen_from, all, of_all, epsilon),
               by_nodes = log_sums(seen_from, nodes, of_all(from), epsilon);
  return (by_nodes - exact).array().expm1().abs().maxCoeff();
}

}  // namespace

CloudExtension::CloudExtension(CloudStage& stage, const Clouds& clouds, const MarginalPolicies& policies)
    : stage_(stage),
      clouds_(clouds),
      rows_(policies.rows, clouds.rows.points.weights(), stage.epsilon(), clouds.rows.own_cost),
      columns_(policies.columns, clouds.columns.points.weights(), stage.epsilon(), clouds.columns.own_cost),
      potentials_(stage.potentials()),
      row_entropy_sums_(
          stage.kernel().row_entropy_sums(stage.outcome().u, stage.outcome().v, Vector::Zero(stage.kernel().cols()))) {
  const PotentialsOfClouds& at = stage_.potentials();
  if (!clouds_.rows_are_nodes)
    extend(rows_, clouds_.rows, log_sums(clouds_.rows.points, stage_.column_points(), at.columns, stage_.epsilon()),
           stage_.outcome().rows.multipliers, potentials_.row_log_ratio, potentials_.rows);
  if (!clouds_.columns_are_nodes)
    extend(columns_, clouds_.columns, log_sums(clouds_.columns.points, stage_.row_points(), at.rows, stage_.epsilon()),
           stage_.outcome().columns.multipliers, potentials_.column_log_ratio, potentials_.columns);
}

double CloudExtension::transport_cost() const {
  const PotentialsOfClouds& at = stage_.potentials();
  const CloudKernel& kernel = stage_.kernel();
  return stage_.epsilon() * (entropy() + at.rows.dot(kernel.row_sums()) + at.columns.dot(kernel.column_sums()));
}

CloudExtension::Part CloudExtension::part(bool all_rows, bool all_columns) const {
  const bool rows_as_solved = !all_rows || clouds_.rows_are_nodes,
             columns_as_solved = !all_columns || clouds_.columns_are_nodes;
  if (rows_as_solved && columns_as_solved) return {nullptr, &stage_.kernel(), stage_.outcome().u, stage_.outcome().v};
  const PotentialsOfClouds& at = stage_.potentials();
  const PotentialsOfClouds here{rows_as_solved ? at.rows : potentials_.rows,
                                columns_as_solved ? at.columns : potentials_.columns,
                                rows_as_solved ? at.row_log_ratio : potentials_.row_log_ratio,
                                columns_as_solved ? at.column_log_ratio : potentials_.column_log_ratio};
  const PointCloud &rows = rows_as_solved ? stage_.row_points() : clouds_.rows.points,
                   &columns = columns_as_solved ? stage_.column_points() : clouds_.columns.points;
  auto kernel = std::make_unique<CloudKernel>(rows, columns, stage_.epsilon());
  kernel->set_pairs(pairs_of_boxes(rows, columns, here, stage_.epsilon(), std::log(negligible)));
  kernel->set_base(here.rows, here.columns);
  const CloudKernel* made = kernel.get();
  return {std::move(kernel), made, Vector::Zero(rows.size()), Vector::Zero(columns.size())};
}

// docs/mathematics.md §3.1.
const CloudExtension::Adjoint& CloudExtension::adjoint() {
  if (adjoint_) return *adjoint_;
  const DualOutcome& outcome = stage_.outcome();
  const PotentialsOfClouds& at = stage_.potentials();
  const Curvature m1 = stage_.rows().curvature(outcome.rows.log_ratio, outcome.rows.multipliers);
  const Curvature m2 = stage_.columns().curvature(outcome.columns.log_ratio, outcome.columns.multipliers);
  const Vector column_sums =
      stage_.kernel().column_entropy_sums(outcome.u, outcome.v, Vector::Zero(stage_.kernel().rows()));
  const SystemSolution solution =
      stage_.solve_system(row_entropy_sums_ - m1.apply(at.rows), column_sums - m2.apply(at.columns));
  adjoint_ = Adjoint{solution.x.col(0), solution.y.col(0), border_coefficients(m1, at.rows, solution.row_border),
                     border_coefficients(m2, at.columns, solution.column_border)};
  return *adjoint_;
}

Matrix CloudExtension::row_forces(Objective objective) {
  const Part all = part(true, false);
  const bool transport = objective == Objective::transport;
  Vector p = Vector::Zero(rows_.weights().size()), q = Vector::Zero(stage_.column_points().size());
  if (transport) {
    q = adjoint().columns;
    p = clouds_.rows_are_nodes
            ? adjoint().rows
            : extended_adjoint(rows_, all.kernel->row_entropy_sums(all.u, all.v, q), potentials_.rows,
                               potentials_.row_log_ratio, stage_.outcome().rows.multipliers, adjoint().row_border);
  }
  return all.kernel->row_forces(
      {.u = all.u, .v = all.v, .constant = 1, .slope = transport ? 1.0 : 0.0, .p = p, .q = q});
}

Matrix CloudExtension::column_forces(Objective objective) {
  const Part all = part(false, true);
  const bool transport = objective == Objective::transport;
  Vector p = Vector::Zero(stage_.row_points().size()), q = Vector::Zero(columns_.weights().size());
  if (transport) {
    p = adjoint().rows;
    q = clouds_.columns_are_nodes ? adjoint().columns
                                  : extended_adjoint(columns_, all.kernel->column_entropy_sums(all.u, all.v, p),
                                                     potentials_.columns, potentials_.column_log_ratio,
                                                     stage_.outcome().columns.multipliers, adjoint().column_border);
  }
  return all.kernel->column_forces(
      {.u = all.u, .v = all.v, .constant = 1, .slope = transport ? 1.0 : 0.0, .p = p, .q = q});
}

std::vector<CloudKernel::Entry> CloudExtension::strongest(Index most) const {
  const Part all = part(true, true);
  return all.kernel->strongest(all.u, all.v, most);
}

double CloudExtension::sampled_error(const std::vector<Index>& row_from, const std::vector<Index>& column_from) const {
  const PointCloud &rows = clouds_.rows.points, &columns = clouds_.columns.points;
  return std::max(
      largest_difference(columns, potentials_.columns, stage_.column_points(), column_from, sample(rows),
                         stage_.epsilon()),
      largest_difference(rows, potentials_.rows, stage_.row_points(), row_from, sample(columns), stage_.epsilon()));
}

}  // namespace unshuffle::transport
