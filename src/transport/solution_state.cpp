#include "transport/solution_state.hpp"

#include <cmath>

namespace unshuffle::transport {

Layout::Layout(Matrix given, Measures weights, MarginalPolicies demanded)
    : transposed(weights.columns.size() > weights.rows.size()),
      cost(std::move(given)),
      measures(std::move(weights)),
      policies(std::move(demanded)) {
  if (std::holds_alternative<Sampled>(policies.rows)) transposed = false;
  if (std::holds_alternative<Sampled>(policies.columns)) transposed = true;
  if (!transposed) return;
  cost = Matrix(cost.transpose());
  std::swap(measures.rows, measures.columns);
  std::swap(policies.rows, policies.columns);
}

Solution::State::State(Layout layout, double smoothing, Team* sharing)
    : transposed(layout.transposed),
      epsilon(smoothing),
      team(sharing),
      rows(layout.policies.rows, layout.measures.rows, smoothing),
      columns(layout.policies.columns, layout.measures.columns, smoothing),
      kernel(std::move(layout.cost), std::move(layout.measures.rows), std::move(layout.measures.columns), smoothing,
             sharing),
      solver(kernel, rows, columns) {}

bool Solution::State::fits(const Potentials& start) const {
  const Vector &of_rows = transposed ? start.columns : start.rows,
               &of_columns = transposed ? start.rows : start.columns;
  return of_rows.size() == kernel.rows() && of_columns.size() == kernel.cols();
}

void Solution::State::ascend(const Potentials& start, const Limits& limits) {
  Vector by_row = (transposed ? start.columns : start.rows) / epsilon;
  Vector by_column = (transposed ? start.rows : start.columns) / epsilon;
  kernel.clear_base();
  kernel.rebase(by_row, by_column);
  run_stages({epsilon}, std::move(by_column), {}, limits);
}

void Solution::State::descend(double largest, const Descent& pace, const Limits& limits) {
  std::vector<double> stages{epsilon};
  while (stages.back() < pace.top * largest) stages.push_back(stages.back() / pace.factor);
  kernel.clear_base();
  run_stages(std::move(stages), Vector::Zero(kernel.cols()), pace, limits);
}

// Stages are listed last to first. Each ε starts from the potentials of the one before, which are right up to a few ε.
void Solution::State::run_stages(std::vector<double> stages, Vector start, const Descent& pace, const Limits& limits) {
  int sinkhorn = 0, newton = 0;
  while (!stages.empty()) {
    const double stage = stages.back();
    stages.pop_back();
    kernel.set_epsilon(stage);
    rows.set_epsilon(stage);
    columns.set_epsilon(stage);
    const bool last = stages.empty();
    solver.begin(start);
    // Two products a sweep; four sweeps of this ratio take about as long as a Newton step by conjugate gradients and
    // cut the error less.
    constexpr double sinkhorn_pays = 0.75;
    outcome = solver.maximise({.tolerance = last ? limits.tolerance : pace.tolerance,
                               .max_newton = limits.max_newton,
                               .sinkhorn_pays = sinkhorn_pays});
    newton += outcome.newton_steps;
    sinkhorn += outcome.sinkhorn_steps;
    if (!last) {
      kernel.rebase(outcome.u, outcome.v);
      start = outcome.v;
    }
  }
  outcome.newton_steps = newton;
  outcome.sinkhorn_steps = sinkhorn;
}

void Solution::State::conclude() {
  kernel.settle();
  kernel.entropy_sums(outcome.u, outcome.v, row_entropy_sums, column_entropy_sums);
  u = outcome.u + kernel.row_base();
  v = outcome.v + kernel.column_base();
  const double relative_entropy = -row_entropy_sums.sum(), mass = kernel.row_sums().sum();
  transport_cost = epsilon * (-relative_entropy + u.dot(kernel.row_sums()) + v.dot(kernel.column_sums()));
  value = transport_cost + epsilon * (relative_entropy - mass + rows.penalty(outcome.rows.log_ratio) +
                                      columns.penalty(outcome.columns.log_ratio));
  potentials = {epsilon * (transposed ? v : u), epsilon * (transposed ? u : v)};
  if (transposed) turned_plan = kernel.plan().transpose();
  converged = outcome.converged;
  message = outcome.message;
  if (!std::isfinite(value)) {  // free sums on both sides, and costs hundreds of ε below zero
    converged = false;
    message = "the plan's mass exceeds the largest double: costs are too far below zero for so small an epsilon";
  }
}

SystemSolution Solution::State::solve_system(const Matrix& f, const Matrix& g) {
  const std::lock_guard lock(factoring);
  return solver.solve_system(outcome, f, g);
}

}  // namespace unshuffle::transport
