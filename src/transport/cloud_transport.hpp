// Transport between clouds of points under squared distances with memory linear in their number (docs/mathematics.md
// §2.9). Keeps its last potentials as a start for the next solution.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/cloud_extension.hpp"

namespace unshuffle::transport {

/// Points as rows of a table, with weights that are positive and sum to one.
struct WeightedPoints {
  const Matrix& points;
  Vector weights;
};

struct CloudReport {
  double transport_cost = 0;     ///< <C, Γ>.
  double value = 0;              ///< As Solution::value().
  double marginal_error = 0;     ///< Of the plan's sums, with a bound on what was left out of them.
  double compression_error = 0;  ///< Largest relative error of a sum by putting nodes for points, in a sample of rows.
  int iterations = 0;
  bool converged = false;
  std::string message;
};

class CloudTransport {
 public:
  /// Coordinates, at most.
  static constexpr Index most_outputs = most_dimensions;

  struct Options {
    MarginalPolicies policies;
    /// What a response's mass costs whatever its partner, in units of ε; only where responses are sampled. Empty: none.
    Vector response_cost;
    double tolerance = 1e-9;
    /// Error of a row or column sum, relative to it, up to which nodes may stand for points.
    double accuracy = 1e-10;
    int max_iterations = 200;
  };

  explicit CloudTransport(Options options);

  CloudReport solve(const WeightedPoints& responses, const WeightedPoints& features, double epsilon);
  /// The next solve starts cold.
  void forget() { last_potential_.reset(); }

  // Of the last solution, by the rows of the tables.
  /// Derivative of the objective in every point.
  [[nodiscard]] Matrix gradient(Side side, Objective objective);
  /// In units of ε and against the weights.
  [[nodiscard]] Vector potential(Side side) const;
  /// Γ of the `most` largest entries of every row and column: row of the responses, row of the features, mass.
  [[nodiscard]] std::vector<CloudKernel::Entry> strongest(Index most) const;
  /// Of a point's mass and its weight.
  [[nodiscard]] Vector log_ratio(Side side) const;

 private:
  [[nodiscard]] bool by_row(Side side) const { return (side == Side::response) != turned_; }
  [[nodiscard]] const PointCloud& cloud(Side side) const { return by_row(side) ? rows_.points : columns_.points; }
  void put_nodes(double epsilon, double accuracy);
  void solve_on_nodes(double epsilon);
  void descend(double epsilon, double factor, double tolerance, double top);
  [[nodiscard]] CloudReport conclude(double epsilon);
  [[nodiscard]] CloudStage::Accuracy final_accuracy() const;

  Options options_;
  bool turned_;  ///< Features are the rows: sampled sums are always there.
  CloudSide rows_, columns_;
  CloudSide row_nodes_, column_nodes_;
  std::vector<Index> row_from_, column_from_;  // where nodes are among the points; empty: they are the same
  std::unique_ptr<CloudStage> stage_;
  std::optional<CloudExtension> solution_;
  std::optional<Vector> last_potential_;  // of the columns, by row of their table, in the unit of the cost
};

}  // namespace unshuffle::transport
