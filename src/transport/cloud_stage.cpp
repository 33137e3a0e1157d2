#include "transport/cloud_stage.hpp"

#include <cmath>

#include "transport/log_sums.hpp"

namespace unshuffle::transport {
namespace {

/// Potentials may move this far, in units of ε, before boxes that were left out begin to matter.
constexpr double room_to_move = 3;
constexpr int most_rounds = 6;
/// As in Solution::State: a column step that leaves more than this of the error is not worth its two products.
constexpr double sinkhorn_pays = 0.75;

}  // namespace

CloudStage::CloudStage(const CloudSide& rows, const CloudSide& columns, const MarginalPolicies& policies,
                       double epsilon)
    : row_side_(rows),
      column_side_(columns),
      epsilon_(epsilon),
      rows_(policies.rows, rows.points.weights(), epsilon, rows.own_cost),
      columns_(policies.columns, columns.points.weights(), epsilon, columns.own_cost),
      kernel_(rows.points, columns.points, epsilon),
      solver_(kernel_, rows_, columns_) {}

/// Row potentials that answer to the columns', and what each column then holds.
PotentialsOfClouds CloudStage::from_columns(Vector v) const {
  PotentialsOfClouds made;
  made.columns = std::move(v);
  const Vector row_sums = log_sums(row_side_.points, column_side_.points, made.columns, epsilon_);
  made.row_log_ratio = rows_.scale(row_sums, Vector::Zero(row_sums.size())).log_ratio;
  made.rows = made.row_log_ratio - row_sums;
  made.column_log_ratio = log_sums(column_side_.points, row_side_.points, made.rows, epsilon_) + made.columns;
  return made;
}

void CloudStage::ascend(Vector v, const Accuracy& accuracy) {
  const double log_negligible = std::log(accuracy.negligible);
  if (columns_.is_free()) v.setZero();
  potentials_ = from_columns(std::move(v));
  int newton = 0, sinkhorn = 0;
  for (int round = 0; round < most_rounds; ++round) {
    kernel_.set_base(potentials_.rows, potentials_.columns);
    kernel_.set_pairs(
        pairs_of_boxes(row_side_.points, column_side_.points, potentials_, epsilon_, log_negligible - room_to_move));
    solver_.begin(Vector::Zero(kernel_.cols()));
    outcome_ = solver_.maximise(
        {.tolerance = accuracy.tolerance, .max_newton = accuracy.max_newton, .sinkhorn_pays = sinkhorn_pays});
    newton += outcome_.newton_steps;
    sinkhorn += outcome_.sinkhorn_steps;
    potentials_ = {outcome_.u + kernel_.row_base(), outcome_.v + kernel_.column_base(), outcome_.rows.log_ratio,
                   outcome_.columns.log_ratio};
    if (!accuracy.certified || !std::isfinite(outcome_.marginal_error)) break;
    if (contains(kernel_.pairs(),
                 pairs_of_boxes(row_side_.points, column_side_.points, potentials_, epsilon_, log_negligible)))
      break;
    if (round + 1 == most_rounds) {
      outcome_.converged = false;
      outcome_.message = "pairs of points that were left out of the plan's sums keep gaining weight";
    }
  }
  outcome_.newton_steps = newton;
  outcome_.sinkhorn_steps = sinkhorn;
}

Vector CloudStage::column_potential_at(const PointCloud& points) const {
  if (columns_.is_free()) return Vector::Zero(points.size());
  const Vector sums = log_sums(points, row_side_.points, potentials_.rows, epsilon_);
  return columns_.extend(sums, outcome_.columns.multipliers) - sums;
}

}  // namespace unshuffle::transport
