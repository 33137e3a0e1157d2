// ROBOT, ROBOT-robust and ROBOT-unrolled: descents on the transport cost from several starts.
#include "estimators/each_start.hpp"
#include "objective/backend.hpp"
#include "objective/costs.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "unshuffle/objective/unrolled.hpp"

namespace unshuffle {

namespace {

/// The options with ε in the unit of the cost. Relative means relative to the largest cost at the first start, so that
/// all starts minimise the same function.
FitOptions with_absolute_epsilon(const MethodInput& input, const Start& first, double& largest_cost) {
  FitOptions options = input.options;
  EvaluatorOptions shared = evaluator_options(options, input.problem);
  shared.team = options.team;
  const Evaluator probe(input.problem, input.bound, shared);
  largest_cost = probe.largest_cost(first.parameters);
  if (!options.epsilon.relative) return options;
  const double unit = largest_cost > 0 ? largest_cost : 1.0;
  options.epsilon = {.value = options.epsilon.value * unit, .relative = false};
  options.epsilon_start *= unit;
  return options;
}

/// Processes that each follow starts of their own need not wait for each other, but need memory for a plan each, and
/// starts enough for all. A plan on the line of one group is always computed by one process.
Shared shared_by_team(const MethodInput& input, std::size_t starts) {
  Team* team = input.options.team;
  if (!several(team)) return Shared::starts;
  const bool on_a_line = backend_for(input.problem, input.bound, input.options.backend) == Backend::sorted;
  if (on_a_line && blocks_of(input.problem).size() == 1) return Shared::starts;
  const auto processes = static_cast<std::size_t>(team->size());
  const std::size_t at_once = std::min<std::size_t>(starts, processes * std::size_t(omp_get_max_threads()));
  const bool room = on_a_line || double(at_once) * dense_bytes(input.problem) <= free_memory_bytes();
  std::vector<double> leader_says{starts >= processes && room ? 1.0 : 0.0};
  team->broadcast(leader_says);  // memory may look different to each
  return leader_says.front() > 0 ? Shared::starts : Shared::work_of_a_start;
}

/// Descents on `objective`; an empty one stands for the exact evaluator.
Estimate descend_from_all(const MethodInput& input, const std::vector<Start>& starts, const OuterObjective& objective) {
  double largest_cost = 0;
  const FitOptions resolved = with_absolute_epsilon(input, starts.front(), largest_cost);
  const Shared shared = shared_by_team(input, starts.size());
  FitOptions of_a_start = resolved;
  if (shared == Shared::starts) of_a_start.team = nullptr;
  const auto work = [&](int k, const Tick& tick) {
    return descend(input.problem, input.bound, of_a_start, starts[std::size_t(k)], k, tick, objective);
  };
  Estimate estimate = best_of(for_each_start(starts, iteration_limit(resolved), resolved, work, shared), starts);
  estimate.objective_name = input.options.objective == Objective::entropic ? "entropic" : "transport";
  estimate.solves_transport = true;
  estimate.epsilon = resolved.epsilon.value;
  estimate.largest_cost = largest_cost;
  return estimate;
}

void require_hessian(const MethodInput& input) {
  if (input.options.optimizer == Optimizer::trust_region &&
      backend_for(input.problem, input.bound, input.options.backend) == Backend::dense) {
    throw InvalidInput("optimizer = trust_region needs the sorted backend: one output and an additive model");
  }
}

/// The objective of all groups by unrolled Sinkhorn iterations, as sums over rows.
class UnrolledObjective {
 public:
  explicit UnrolledObjective(const MethodInput& input) : input_(input) {
    const Problem& problem = input.problem;
    const Matrix x = input.bound.basis(Side::response, problem.x);
    const Matrix z = input.bound.basis(Side::feature, problem.z);
    for (const Block& block : blocks_of(problem)) {
      blocks_.push_back({{x(block.response_rows, Eigen::all), problem.y(block.response_rows, Eigen::all),
                          z(block.feature_rows, Eigen::all)},
                         problem.response_weights(block.response_rows),
                         problem.feature_weights(block.feature_rows),
                         block.share * double(problem.responses())});
    }
  }

  Evaluation operator()(const VectorRef& w, double epsilon, bool /*with_hessian*/) const {
    Evaluation sum;
    sum.gradient = Vector::Zero(w.size());
    sum.inner_iterations = input_.options.unroll;
    for (const auto& [tables, a, b, rows] : blocks_) {
      Matrix cost;
      squared_costs(input_.bound, tables, w, cost);
      const UnrolledSinkhorn unrolled = unrolled_sinkhorn(cost, a, b, epsilon, input_.options.unroll);
      sum.objective += rows * unrolled.transport_cost;
      sum.marginal_error = std::max(sum.marginal_error, unrolled.marginal_error);
      pull_back_costs(input_.bound, tables, rows * unrolled.weights, w, sum.gradient);
    }
    sum.transport_cost = sum.objective;
    sum.converged = true;
    return sum;
  }

 private:
  struct Part {
    TwoTables tables;
    Vector response_weights;
    Vector feature_weights;
    double rows;
  };
  const MethodInput& input_;
  std::vector<Part> blocks_;
};

}  // namespace

Estimate estimate_robot(const MethodInput& input) {
  require_hessian(input);
  return descend_from_all(input, make_starts(input.problem, input.bound, input.options), {});
}

// Relaxed sums make it easy to fit some rows and leave the others, so that far from the answer the robust objective has
// more minima than the exact one: ROBOT's answer is one more start, and often leads to the lowest.
Estimate estimate_robot_robust(const MethodInput& input) {
  require_hessian(input);
  std::vector<Start> starts = make_starts(input.problem, input.bound, input.options);
  const bool knows_its_way = input.options.start_kind != StartKind::automatic || starts.front().covariance.size() > 0;
  if (knows_its_way || input.options.batch > 0) return descend_from_all(input, starts, {});
  FitOptions exact = input.options, relaxed = input.options;
  exact.method = Method::robot;
  if (const auto& progress = input.options.progress) {
    exact.progress = [&](double done, double total) { return progress(0.5 * done / total, 1); };
    relaxed.progress = [&](double done, double total) { return progress(0.5 + 0.5 * done / total, 1); };
  }
  const Estimate answer = descend_from_all({input.problem, input.bound, exact}, starts, {});
  starts.push_back({"robot", answer.candidates.front().parameters, {}, 0});
  Estimate estimate = descend_from_all({input.problem, input.bound, relaxed}, starts, {});
  estimate.evaluations += answer.evaluations;
  estimate.stopped = estimate.stopped || answer.stopped;
  return estimate;
}

Estimate estimate_robot_unrolled(const MethodInput& input) {
  const FitOptions& options = input.options;
  if (options.objective == Objective::entropic) {
    throw InvalidInput("robot-unrolled differentiates the transport cost; objective = entropic has no meaning with it");
  }
  if (options.optimizer == Optimizer::trust_region || options.batch > 0) {
    throw InvalidInput("robot-unrolled has gradients of all rows only: no trust-region optimiser, no batches");
  }
  FitOptions first_order = options;
  if (options.optimizer == Optimizer::automatic) first_order.optimizer = Optimizer::lbfgs;
  const MethodInput unrolled{input.problem, input.bound, first_order};
  const std::vector<Start> starts = make_starts(input.problem, input.bound, first_order);
  Estimate estimate = descend_from_all(unrolled, starts, UnrolledObjective(unrolled));
  estimate.objective_name = "transport after unrolled iterations";
  estimate.solves_transport = false;
  return estimate;
}

}  // namespace unshuffle
