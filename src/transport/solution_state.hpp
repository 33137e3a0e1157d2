// A problem with any cost in the form DualSolver takes, and once solved everything a Solution provides.
#pragma once

#include <mutex>

#include "transport/dense_kernel.hpp"
#include "transport/dual.hpp"
#include "unshuffle/transport/solution.hpp"

namespace unshuffle::transport {

struct Measures {
  Vector rows, columns;  ///< Weights that sum to one.
};

/// In the unit of the cost.
struct Potentials {
  Vector rows, columns;
};

/// Layout for the solver. S lives on the columns, so the side with fewer rows goes there, or the one that is not
/// sampled: `transposed` means that the caller's rows are the kernel's columns.
struct Layout {
  Layout(Matrix given, Measures weights, MarginalPolicies demanded);

  bool transposed;
  Matrix cost;
  Measures measures;
  MarginalPolicies policies;
};

/// How ε falls from stage to stage, the marginal error at which stages before the last are left, and the share of the
/// largest cost at or above which it begins.
struct Descent {
  double factor;
  double tolerance;
  double top;
};

/// How far the last stage goes.
struct Limits {
  double tolerance;
  int max_newton;
};

struct Solution::State {
  State(Layout layout, double smoothing, Team* sharing);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] bool fits(const Potentials& start) const;
  /// From potentials that fit, at the final ε.
  void ascend(const Potentials& start, const Limits& limits);
  /// From a smooth problem down to the final one; `largest` is the largest |cost|.
  void descend(double largest, const Descent& pace, const Limits& limits);
  /// Computes the quantities that the solution offers.
  void conclude();

  /// The curvature's system at the solution. Its factor is kept for the next, so one thread works on it at a time.
  [[nodiscard]] SystemSolution solve_system(const Matrix& f, const Matrix& g);

  bool transposed;
  double epsilon;
  Team* team;
  SideTerms rows, columns;  // as the kernel has them, like everything up to the mutex
  DenseKernel kernel;
  DualSolver<DenseKernel> solver;
  DualOutcome outcome;
  Vector u, v;                                   // whole potentials, in units of ε
  Vector row_entropy_sums, column_entropy_sums;  // of e∘Γ, e = -log(Γ/(μ⊗ν))
  std::mutex factoring;

  Matrix turned_plan;  // as the caller's cost lies, where the kernel's lies otherwise
  Potentials potentials;
  double value = 0, transport_cost = 0;
  bool converged = false;
  std::string message;

 private:
  void run_stages(std::vector<double> stages, Vector start, const Descent& pace, const Limits& limits);
};

}  // namespace unshuffle::transport
