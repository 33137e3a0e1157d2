// Transport between points on a line at any number of points: compress both sides, solve on the nodes, return to
// the points by interpolation. Keeps its last solution as a start for the next one.
#pragma once

#include <memory>
#include <string>

#include "transport/compress.hpp"
#include "transport/node_problem.hpp"

namespace unshuffle::transport {

struct LineOptions {
  MarginalPolicy row_policy = Exact{};
  MarginalPolicy column_policy = Exact{};
  double tolerance = 1e-9;   ///< Marginal error on the nodes.
  double accuracy = 1e-11;   ///< Largest accepted estimate of a row or column sum's error by compression, relative to it.
  bool compress = true;      ///< Off: nodes are the points; for tests and as a reference.
};

struct LineReport {
  double transport_cost = 0;  ///< <C, Γ>.
  double value = 0;           ///< Entropic value, without the constant of the weights' own entropies.
  double mass = 1;            ///< Σ Γ.
  double marginal_error = 0;
  double compression_error = 0;  ///< Largest relative error of a row or column sum by compression, as estimated.
  int iterations = 0;
  bool converged = false;
  std::string message;
};

class LineTransport {
 public:
  explicit LineTransport(LineOptions options) : options_(std::move(options)) {}

  /// Weights may be empty (equal); otherwise positive, summing to one.
  LineReport solve(const VectorRef& t, const VectorRef& row_weights, const VectorRef& s,
                   const VectorRef& column_weights, double epsilon);
  /// The next solve starts cold.
  void forget();

  /// Derivative of the objective in every t (or s), at unit weight: multiply by the point's weight.
  [[nodiscard]] Vector gradient(Side side, Objective objective);
  /// Potential of every point, in units of ε and against the weights, and log of its mass ratio.
  [[nodiscard]] Vector potential(Side side);
  [[nodiscard]] Vector log_ratio(Side side);

  /// Hessian of the objective in the parameters behind t and s, given the weighted Jacobians' columns one by one.
  /// Does not contain the part of ∂²t/∂w², which needs only gradient().
  [[nodiscard]] Matrix hessian(const MatrixRef& t_jacobian, const VectorRef& row_weights, const MatrixRef& s_jacobian,
                               const VectorRef& column_weights, Objective objective);

 private:
  struct SideState {
    CompressedMeasure measure;
    CompressionRule rule;
  };

  struct LinePoints {
    const VectorRef &t, &row_weights, &s, &column_weights;
  };

  LineReport descend(const LinePoints& points, double epsilon);
  LineReport solve_at(const LinePoints& points, double epsilon, double tolerance);
  [[nodiscard]] SideState& state(Side side) { return side == Side::response ? rows_ : columns_; }
  void compress(SideState& side, const VectorRef& points, const VectorRef& weights, double epsilon);
  void begin(NodeProblem& next) const;
  [[nodiscard]] bool narrow_where_needed(Side side, double& worst);
  [[nodiscard]] Matrix entropic_hessian(NodeProblem& nodes, const MatrixRef& t_jacobian, const Momentum& momentum,
                                        const VectorRef& row_weights, const MatrixRef& s_jacobian,
                                        const VectorRef& column_weights);

  LineOptions options_;
  SideState rows_, columns_;
  std::unique_ptr<NodeProblem> nodes_;
};

}  // namespace unshuffle::transport
