// The transport problem between two clouds at one ε.
#pragma once

#include "transport/cloud_kernel.hpp"
#include "transport/dual.hpp"

namespace unshuffle::transport {

/// One side: its points, and what a row's mass costs whatever its partner, in units of ε (empty: nothing).
struct CloudSide {
  PointCloud points;
  Vector own_cost;
};

class CloudStage {
 public:
  struct Accuracy {
    double tolerance = 1e-9;    ///< Of the marginals.
    double negligible = 1e-12;  ///< Share of a row or column that may be left out.
    bool certified = true;      ///< Whether what was left out is checked with the potentials at the end.
    int max_newton = 200;
  };

  /// The sides must outlive the stage.
  CloudStage(const CloudSide& rows, const CloudSide& columns, const MarginalPolicies& policies, double epsilon);

  /// Solves from column potentials in units of ε.
  void ascend(Vector v, const Accuracy& accuracy);

  [[nodiscard]] const DualOutcome& outcome() const { return outcome_; }
  /// Whole potentials, in units of ε.
  [[nodiscard]] const PotentialsOfClouds& potentials() const { return potentials_; }
  [[nodiscard]] const CloudKernel& kernel() const { return kernel_; }
  [[nodiscard]] double epsilon() const { return epsilon_; }
  [[nodiscard]] const PointCloud& row_points() const { return row_side_.points; }
  [[nodiscard]] const PointCloud& column_points() const { return column_side_.points; }
  [[nodiscard]] const SideTerms& rows() const { return rows_; }
  [[nodiscard]] const SideTerms& columns() const { return columns_; }
  /// Column potentials, in units of this ε, at the points of another cloud.
  [[nodiscard]] Vector column_potential_at(const PointCloud& points) const;
  [[nodiscard]] SystemSolution solve_system(const Matrix& f, const Matrix& g) {
    return solver_.solve_system(outcome_, f, g);
  }

 private:
  [[nodiscard]] PotentialsOfClouds from_columns(Vector v) const;

  const CloudSide &row_side_, &column_side_;
  double epsilon_;
  SideTerms rows_, columns_;
  CloudKernel kernel_;
  DualSolver<CloudKernel> solver_;
  DualOutcome outcome_;
  PotentialsOfClouds potentials_;
};

}  // namespace unshuffle::transport
