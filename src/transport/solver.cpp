#include "unshuffle/transport/solver.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/in_parallel.hpp"
#include "core/of_all.hpp"
#include "transport/solution_state.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::transport {
namespace {

/// First quickly, then with more care if that did not converge. At 0.04 of the largest cost sweeps from zero potentials
/// still contract fast; stages above only cost their exponentials.
constexpr Descent hasty{0.25, 1e-2, 0.04}, careful{0.6, 1e-6, 0.6};
/// Above this, a failure to converge is not due to rounding.
constexpr double far_off = 1e-6;

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
  if (cost.allFinite()) return;
  for (Index i = 0; i < cost.rows(); ++i) {
    for (Index j = 0; j < cost.cols(); ++j) {
      if (!std::isfinite(cost(i, j)))
        throw InvalidInput(fmt::format("cost is {} in row {}, column {}, counted from 0; a finite number was expected",
                                       cost(i, j), i, j));
    }
  }
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

struct Solver::State {
  SolverOptions options;
  std::optional<Potentials> last;
};

Solver::Solver(SolverOptions options) : state_(std::make_unique<State>()) { set_options(options); }
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

const SolverOptions& Solver::options() const { return state_->options; }

void Solver::set_options(const SolverOptions& options) {
  validate(options);
  state_->options = options;
}

Solution Solver::solve(Matrix cost, const VectorRef& row_weights, const VectorRef& column_weights) {
  validate_cost(cost);
  const SolverOptions& options = state_->options;
  const bool shared = several(options.team);
  const Index rows = shared ? row_weights.size() : cost.rows(), columns = shared ? column_weights.size() : cost.cols();
  if (shared) validate_share(cost, rows, columns, *options.team);
  const double largest = largest_of_all(options.team, cost.cwiseAbs().maxCoeff());
  const double epsilon = options.relative ? options.epsilon * (largest > 0 ? largest : 1) : options.epsilon;
  Measures measures{normalised_weights(row_weights, rows, "row weights"),
                    normalised_weights(column_weights, columns, "column weights")};
  const auto solved = std::make_shared<Solution::State>(
      Layout(std::move(cost), std::move(measures), of_sizes(options.rows, options.columns, rows, columns)), epsilon,
      options.team);
  const DualOutcome& outcome = solved->outcome;
  const Limits limits{options.tolerance, options.max_iterations};
  // A warm start skips the way down.
  if (options.warm_start && state_->last && solved->fits(*state_->last)) solved->ascend(*state_->last, limits);
  if (!outcome.converged) solved->descend(largest, hasty, limits);
  if (!outcome.converged && outcome.marginal_error > far_off) solved->descend(largest, careful, limits);
  solved->conclude();
  state_->last = solved->potentials;
  return Solution(solved);
}

Solution solve(Matrix cost, const SolverOptions& options) { return Solver(options).solve(std::move(cost)); }

Solution solve(Matrix cost, const VectorRef& row_weights, const VectorRef& column_weights,
               const SolverOptions& options) {
  return Solver(options).solve(std::move(cost), row_weights, column_weights);
}

std::vector<Solution> solve_batch(const std::vector<Matrix>& costs, const SolverOptions& options) {
  for (const Matrix& cost : costs) validate_cost(cost);
  std::vector<std::optional<Solution>> found(costs.size());
  in_parallel(costs.size(), [&](std::size_t k) { found[k] = solve(costs[k], options); });
  std::vector<Solution> solutions;
  solutions.reserve(found.size());
  for (auto& solution : found) solutions.push_back(std::move(*solution));
  return solutions;
}

}  // namespace unshuffle::transport
