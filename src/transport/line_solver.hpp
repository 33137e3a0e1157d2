// The transport problem between two sets of points on a line, wherever the points are stored: compress both sides,
// solve on the nodes, narrow boxes and cells where the solution requires it. Keeps its last solution as a start for the
// next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/compress.hpp"
#include "transport/node_problem.hpp"

namespace unshuffle::transport {

struct LineOptions {
  MarginalPolicy row_policy = Exact{};
  MarginalPolicy column_policy = Exact{};
  RowCost row_cost = {};
  double tolerance = 1e-9;  ///< Marginal error on the nodes.
  double accuracy =
      1e-11;             ///< Largest accepted estimate of a row or column sum's error by compression, relative to it.
  bool compress = true;  ///< Off: nodes are the points; for tests and as a reference.
};

struct LineReport {
  double transport_cost = 0;  ///< <C, Γ>.
  double value = 0;           ///< Entropic value, without the constant of the weights' own entropies.
  double mass = 1;            ///< Σ Γ.
  double marginal_error = 0;
  double compression_error = 0;  ///< Estimated largest relative error of a row or column sum by compression.
  int iterations = 0;
  bool converged = false;
  std::string message;
};

/// The points of one side as the solver needs them.
class LinePoints {
 public:
  virtual ~LinePoints() = default;
  [[nodiscard]] virtual Range range() const = 0;
  virtual void compress(const CompressionRule& rule) = 0;
  /// The result of compress(): its nodes and boxes.
  [[nodiscard]] virtual const CompressedMeasure& measure() const = 0;
  /// Whether nothing is approximated, neither by boxes nor by cells.
  [[nodiscard]] virtual bool exact() const = 0;
  /// For every node, the width of the cell in which functions are interpolated there; 0 where they are not.
  [[nodiscard]] virtual Vector interpolated_width() const = 0;
};

class LineSolver {
 public:
  explicit LineSolver(LineOptions options) : options_(std::move(options)) {}

  LineReport solve(LinePoints& rows, LinePoints& columns, double epsilon);
  /// The next solve starts cold.
  void forget();

  [[nodiscard]] const LineOptions& options() const { return options_; }
  /// The last solution.
  [[nodiscard]] NodeProblem& nodes() const { return *nodes_; }

 private:
  struct Sides {
    LinePoints &rows, &columns;
    [[nodiscard]] LinePoints& of(Side side) const { return side == Side::response ? rows : columns; }
  };

  LineReport descend(const Sides& sides, double epsilon);
  LineReport solve_at(const Sides& sides, double epsilon, double tolerance);
  [[nodiscard]] CompressionRule& rule(Side side) { return side == Side::response ? row_rule_ : column_rule_; }
  void compress(const Sides& sides, Side side, double epsilon);
  void begin(const Sides& sides, NodeProblem& next) const;
  [[nodiscard]] bool narrow_where_needed(const LinePoints& own, Side side, double& worst);

  LineOptions options_;
  CompressionRule row_rule_, column_rule_;
  std::unique_ptr<NodeProblem> nodes_;
};

/// The second derivative of the objective at a solution, in two parts: the effect of a moving point on its own gradient
/// with everything else fixed, and the reaction of the plan to moving points. The Hessian in parameters w is
///   reaction + Σ_i μ_i slope(t_i) (∂t_i/∂w)(∂t_i/∂w)ᵀ + Σ_j ν_j slope(s_j) (∂s_j/∂w)(∂s_j/∂w)ᵀ.
class LineCurvature {
 public:
  LineCurvature(const LineSolver& solver, Objective objective);

  /// The first part at ascending positions of a side.
  [[nodiscard]] Vector slope(Side side, const Vector& positions);
  /// The second, from momenta on the given positions.
  [[nodiscard]] Matrix reaction(const Vector& row_positions, const Vector& column_positions, const Momentum& momentum);

 private:
  /// A solution and the factor its entropic curvature enters with.
  struct Term {
    NodeProblem* nodes;
    double factor;
  };
  std::vector<std::unique_ptr<NodeProblem>> scaled_;
  std::vector<Term> terms_;
};

}  // namespace unshuffle::transport
