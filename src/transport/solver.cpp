#include "unshuffle/transport/solver.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/of_all.hpp"
#include "transport/dense_kernel.hpp"
#include "transport/dual.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::transport {
namespace {

/// How ε falls from stage to stage, and the marginal error at which stages before the last are left: first in haste,
/// and again with more care where that did not arrive.
struct Descent {
  double factor;
  double tolerance;
};
/// Beyond this it is not rounding that keeps a solve from converging.
constexpr double far_off = 1e-6;
constexpr Descent hasty{0.25, 1e-2}, careful{0.6, 1e-6};

void validate(const SolverOptions& options) {
  if (!(options.epsilon > 0) || !std::isfinite(options.epsilon))
    throw InvalidInput(fmt::format("epsilon = {} must be finite and > 0", options.epsilon));
  if (!(options.tolerance > 0)) throw InvalidInput(fmt::format("tolerance = {} must be > 0", options.tolerance));
  if (options.max_iterations < 1)
    throw InvalidInput(fmt::format("max_iterations = {} must be >= 1", options.max_iterations));
  validate(options.rows, options.columns);
  const bool sampled =
      std::holds_alternative<Sampled>(options.rows) || std::holds_alternative<Sampled>(options.columns);
  if (sampled && several(options.team)) throw InvalidInput("a plan with sampled sums cannot be shared by processes");
}

/// Of the cost that a process gives, when all of it is rows×columns.
void validate_share(const MatrixRef& cost, Index rows, Index columns, const Team& team) {
  const bool by_row = rows >= columns;
  const Index expected_rows = by_row ? team.share_of(rows).count : rows;
  const Index expected_columns = by_row ? columns : team.share_of(columns).count;
  if (cost.rows() != expected_rows || cost.cols() != expected_columns)
    throw InvalidInput(fmt::format("cost is {}x{}; this process's share of {}x{} is {}x{}", cost.rows(), cost.cols(),
                                   rows, columns, expected_rows, expected_columns));
}

void validate_cost(const MatrixRef& cost) {
  if (cost.rows() == 0 || cost.cols() == 0)
    throw InvalidInput(
        fmt::format("cost is {}x{}; at least one row and one column are needed", cost.rows(), cost.cols()));
  if (!cost.allFinite()) throw InvalidInput("cost holds a value that is not finite");
}

}  // namespace

Vector normalised_weights(const VectorRef& weights, Index size, const char* name) {
  if (weights.size() == 0) return Vector::Constant(size, 1.0 / static_cast<double>(size));
  if (weights.size() != size)
    throw InvalidInput(fmt::format("{} has {} entries; the cost asks for {}", name, weights.size(), size));
  if (!weights.allFinite() || weights.minCoeff() < 0)
    throw InvalidInput(fmt::format("{} must be finite and >= 0; the smallest is {}", name, weights.minCoeff()));
  if (!(weights.sum() > 0)) throw InvalidInput(fmt::format("{} sum to zero", name));
  return weights / weights.sum();
}

/// S lives on the columns, so the side with fewer rows is laid there, or the one that is not sampled: `transposed` says
/// that the caller's rows are the kernel's columns.
struct Solver::State {
  SolverOptions options;
  bool transposed = false;
  std::optional<Matrix> cost;
  SideTerms rows, columns;
  std::unique_ptr<DenseKernel> kernel;
  std::unique_ptr<DualSolver<DenseKernel>> solver;
  DualOutcome outcome;
  Vector last_row_potential, last_column_potential;  // in the unit of the cost, kernel's orientation

  void lay_out(const MatrixRef& given, Vector row_weights, Vector column_weights, double epsilon);
  void descend(double largest, double epsilon, bool from_last, const Descent& pace);
  [[nodiscard]] bool warm() const {
    return options.warm_start && last_column_potential.size() == kernel->cols() &&
           last_row_potential.size() == kernel->rows();
  }
};

void Solver::State::lay_out(const MatrixRef& given, Vector row_weights, Vector column_weights, double epsilon) {
  MarginalPolicies policies = of_sizes(options.rows, options.columns, row_weights.size(), column_weights.size());
  transposed = column_weights.size() > row_weights.size();
  if (std::holds_alternative<Sampled>(policies.rows)) transposed = false;
  if (std::holds_alternative<Sampled>(policies.columns)) transposed = true;
  cost = transposed ? Matrix(given.transpose()) : Matrix(given);
  if (transposed) {
    std::swap(row_weights, column_weights);
    std::swap(policies.rows, policies.columns);
  }
  rows = SideTerms(policies.rows, row_weights, epsilon);
  columns = SideTerms(policies.columns, column_weights, epsilon);
  kernel =
      std::make_unique<DenseKernel>(*cost, std::move(row_weights), std::move(column_weights), epsilon, options.team);
  solver = std::make_unique<DualSolver<DenseKernel>>(*kernel, rows, columns);
}

// From a smooth problem down to the one asked for: each ε starts from the potentials of the one before, which are
// right up to a few ε. A warm start skips the way down.
void Solver::State::descend(double largest, double epsilon, bool from_last, const Descent& pace) {
  Vector u = Vector::Zero(kernel->rows()), v = Vector::Zero(kernel->cols());
  std::vector<double> stages{epsilon};
  kernel->clear_base();
  if (from_last) {
    u = last_row_potential / epsilon;
    v = last_column_potential / epsilon;
    kernel->rebase(u, v);
  } else {
    while (stages.back() < pace.factor * largest) stages.push_back(stages.back() / pace.factor);
  }
  int sinkhorn = 0, newton = 0;
  while (!stages.empty()) {
    const double stage = stages.back();
    stages.pop_back();
    kernel->set_epsilon(stage);
    rows.set_epsilon(stage);
    columns.set_epsilon(stage);
    const bool last = stages.empty();
    solver->begin(v);
    outcome = solver->maximise({.tolerance = last ? options.tolerance : pace.tolerance,
                                .max_newton = options.max_iterations,
                                .sinkhorn_first = true});
    newton += outcome.newton_steps;
    sinkhorn += outcome.sinkhorn_steps;
    if (!last) {
      kernel->rebase(outcome.u, outcome.v);
      v = outcome.v;
    }
  }
  outcome.newton_steps = newton;
  outcome.sinkhorn_steps = sinkhorn;
}

Solver::Solver(SolverOptions options) : state_(std::make_unique<State>()) { set_options(options); }
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

const SolverOptions& Solver::options() const { return state_->options; }

void Solver::set_options(const SolverOptions& options) {
  validate(options);
  state_->options = options;
}

Plan Solver::solve(const MatrixRef& cost, const VectorRef& row_weights, const VectorRef& column_weights) {
  validate_cost(cost);
  State& state = *state_;
  const bool shared = several(state.options.team);
  const Index rows = shared ? row_weights.size() : cost.rows(), columns = shared ? column_weights.size() : cost.cols();
  if (shared) validate_share(cost, rows, columns, *state.options.team);
  const double largest = largest_of_all(state.options.team, cost.cwiseAbs().maxCoeff());
  const double epsilon =
      state.options.relative ? state.options.epsilon * (largest > 0 ? largest : 1) : state.options.epsilon;
  state.lay_out(cost, normalised_weights(row_weights, rows, "row weights"),
                normalised_weights(column_weights, columns, "column weights"), epsilon);
  state.descend(largest, epsilon, state.warm(), hasty);
  if (!state.outcome.converged && state.warm()) state.descend(largest, epsilon, false, hasty);
  if (!state.outcome.converged && state.outcome.marginal_error > far_off)
    state.descend(largest, epsilon, false, careful);

  const DualOutcome& outcome = state.outcome;
  const DenseKernel& kernel = *state.kernel;
  Plan plan;
  plan.epsilon = epsilon;
  plan.marginal_error = outcome.marginal_error;
  plan.error_history = outcome.history;
  plan.sinkhorn_steps = outcome.sinkhorn_steps;
  plan.newton_steps = outcome.newton_steps;
  plan.converged = outcome.converged;
  plan.message = outcome.message;
  Vector by_row, by_column;
  kernel.entropy_sums(outcome.u, outcome.v, by_row, by_column);
  const Vector u = outcome.u + kernel.row_base(), v = outcome.v + kernel.column_base();
  const double relative_entropy = -by_row.sum(), mass = kernel.row_sums().sum();
  plan.transport_cost = epsilon * (-relative_entropy + u.dot(kernel.row_sums()) + v.dot(kernel.column_sums()));
  plan.value = plan.transport_cost + epsilon * (relative_entropy - mass + state.rows.penalty(outcome.rows.log_ratio) +
                                                state.columns.penalty(outcome.columns.log_ratio));
  state.last_row_potential = epsilon * u;
  state.last_column_potential = epsilon * v;
  if (!std::isfinite(plan.value)) {  // free sums on both sides, and costs hundreds of ε below zero
    plan.converged = false;
    plan.message = "the plan's mass is beyond the largest double: costs are too far below zero for so small an epsilon";
  }
  plan.coupling = state.transposed ? Matrix(kernel.plan().transpose()) : kernel.plan();
  plan.row_sums = state.transposed ? kernel.column_sums() : kernel.row_sums();
  plan.column_sums = state.transposed ? kernel.row_sums() : kernel.column_sums();
  plan.row_potential = state.transposed ? state.last_column_potential : state.last_row_potential;
  plan.column_potential = state.transposed ? state.last_row_potential : state.last_column_potential;
  return plan;
}

// Section 3 of the mathematics, centred on the potentials as on the scalar path (node_problem.cpp).
Matrix Solver::weights(const Plan& plan, Objective objective) {
  State& state = *state_;
  if (!state.kernel) throw InvalidInput("weights() was called before solve()");
  if (objective == Objective::entropic) return plan.coupling;
  const DualOutcome& outcome = state.outcome;
  DenseKernel& kernel = *state.kernel;
  Vector by_row, by_column;
  kernel.entropy_sums(outcome.u, outcome.v, by_row, by_column);
  const Vector u = outcome.u + kernel.row_base(), v = outcome.v + kernel.column_base();
  const Curvature m1 = state.rows.curvature(outcome.rows.log_ratio, outcome.rows.multipliers);
  const Curvature m2 = state.columns.curvature(outcome.columns.log_ratio, outcome.columns.multipliers);
  const SystemSolution adjoint = state.solver->solve_system(outcome, by_row - m1.apply(u), by_column - m2.apply(v));
  const Matrix w = kernel.weighted_plan(outcome.u, outcome.v, adjoint.x.col(0), adjoint.y.col(0));
  return state.transposed ? Matrix(w.transpose()) : w;
}

// dΓ = Γ(du + dv - dC/ε) and H [du; dv] = [(Γ∘dC)1; (Γ∘dC)ᵀ1]/ε, so with H [p; q] = [(Γ∘G)1; (Γ∘G)ᵀ1] the product
// <G, dΓ> is <Γ(p + q - G)/ε, dC>.
Matrix Solver::pull_back(const Plan& plan, const MatrixRef& cotangent) {
  State& state = *state_;
  if (!state.kernel) throw InvalidInput("pull_back() was called before solve()");
  if (cotangent.rows() != plan.coupling.rows() || cotangent.cols() != plan.coupling.cols())
    throw InvalidInput(fmt::format("cotangent is {}x{}; the plan is {}x{}", cotangent.rows(), cotangent.cols(),
                                   plan.coupling.rows(), plan.coupling.cols()));
  Team* team = state.options.team;
  const Matrix& coupling = state.kernel->plan();
  Matrix weighted = coupling;
  state.transposed ? weighted.array() *= cotangent.transpose().array() : weighted.array() *= cotangent.array();
  const SystemSolution adjoint =
      state.solver->solve_system(state.outcome, rows_of_all(team, Vector(weighted.rowwise().sum())),
                                 sum_of_all(team, Vector(weighted.colwise().sum())));
  const auto own_rows = several(team) ? team->share_of(adjoint.x.rows()) : RowShare{0, adjoint.x.rows()};
  const Eigen::ArrayXd p = adjoint.x.col(0).segment(own_rows.first, own_rows.count);
  for (Index j = 0; j < weighted.cols(); ++j) {
    weighted.col(j) = (coupling.col(j).array() * (p + adjoint.y(j, 0)) - weighted.col(j).array()) / plan.epsilon;
  }
  return state.transposed ? Matrix(weighted.transpose()) : weighted;
}

std::vector<Plan> solve_batch(const std::vector<Matrix>& costs, const SolverOptions& options) {
  std::vector<Plan> plans(costs.size());
  for (const Matrix& cost : costs) validate_cost(cost);
  SolverOptions cold = options;
  cold.warm_start = false;
#pragma omp parallel
  {
    Solver solver(cold);
#pragma omp for schedule(dynamic, 8)
    for (std::size_t k = 0; k < costs.size(); ++k) plans[k] = solver.solve(costs[k]);
  }
  return plans;
}

}  // namespace unshuffle::transport
