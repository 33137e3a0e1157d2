// ROBOT, ROBOT-robust and ROBOT-unrolled: descents on the transport cost from several starts.
#include <fmt/format.h>
#include "estimators/each_start.hpp"

#include "objective/backend.hpp"
#include "objective/costs.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "unshuffle/objective/unrolled.hpp"

namespace unshuffle {

namespace {

/// Settings of a descent on a plan, common to the three.
struct Descents {
  const char* name;
  EvaluatorOptions evaluator;  ///< ε as the user gave it.
  DescentOptions descent;
  int max_iterations = 0;
  OuterObjective objective{};
};

/// ε in the unit of the cost. Relative means relative to the largest cost at the first start, so that all starts
/// minimise the same function.
double resolve_epsilon(const Input& input, const Start& first, Descents& descents) {
  const Evaluator probe(input.problem, input.bound, descents.evaluator);
  const double largest_cost = probe.largest_cost(first.parameters);
  if (!descents.evaluator.epsilon.relative) return largest_cost;
  const double unit = largest_cost > 0 ? largest_cost : 1.0;
  descents.evaluator.epsilon = {.value = descents.evaluator.epsilon.value * unit, .relative = false};
  descents.descent.epsilon_start *= unit;
  return largest_cost;
}

/// Processes that each run their own starts need not wait for each other, but need memory for a plan each and enough
/// starts. A plan of one group on a line is always computed by one process.
Shared shared_by_team(const Input& input, Backend backend, std::size_t starts) {
  Team* team = input.run.team;
  if (!several(team)) return Shared::starts;
  const bool linear = backend_for(input.problem, input.bound, backend) != Backend::dense;
  if (linear && blocks_of(input.problem).size() == 1) return Shared::starts;
  const auto processes = static_cast<std::size_t>(team->size());
  const std::size_t at_once = std::min<std::size_t>(starts, processes * std::size_t(omp_get_max_threads()));
  const bool room = linear || double(at_once) * dense_bytes(input.problem) <= free_memory_bytes();
  std::vector<double> leader_says{starts >= processes && room ? 1.0 : 0.0};
  team->broadcast(leader_says);  // free memory may differ between processes
  return leader_says.front() > 0 ? Shared::starts : Shared::work_of_a_start;
}

Estimate descend_from_all(Descents descents, const Input& input, const std::vector<Start>& starts) {
  descents.evaluator.team = input.run.team;
  const double largest_cost = resolve_epsilon(input, starts.front(), descents);
  const Shared shared = shared_by_team(input, descents.evaluator.backend, starts.size());
  DescentTask task{input.problem,           input.bound,    descents.evaluator, descents.descent,
                   descents.max_iterations, input.run.seed, descents.objective};
  if (shared == Shared::starts) task.evaluator.team = nullptr;
  const auto work = [&](const StartAt& at) { return descend(task, at.start, at.index, at.tick); };
  const EachStart each{descents.name, starts, double(iteration_limit(task)), shared};
  Estimate result = best_of(for_each_start(each, input.run, work), starts);
  result.objective_name = name_of(descents.evaluator.objective);
  result.solves_transport = true;
  result.epsilon = descents.evaluator.epsilon.value;
  result.largest_cost = largest_cost;
  return result;
}

Descents descents_of(const Estimator& estimator, const Robot& robot, const Input& input) {
  return {.name = name_of(estimator).data(),
          .evaluator = plan_options(estimator, double(input.problem.responses()), double(input.problem.features())),
          .descent = robot.descent,
          .max_iterations = robot.limit.max_iterations};
}

Robot with_settings(const Robot& robot, const Input& input) {
  if (!robot.paper.paper) return robot;
  return with_paper_settings(robot, input.problem.responses(), input.bound.linear_in_parameters());
}

void require_hessian(const Robot& robot, const Input& input) {
  if (robot.descent.optimizer == Optimizer::trust_region &&
      backend_for(input.problem, input.bound, robot.precision.backend) != Backend::sorted) {
    throw InvalidInput(fmt::format("{} needs the sorted backend: one output and an additive model",
                                   option("optimizer", "trust-region")));
  }
}

/// The objective of all groups by unrolled Sinkhorn iterations, as sums over rows.
class UnrolledObjective {
 public:
  UnrolledObjective(const RobotUnrolled& options, const Input& input)
      : iterations_(options.unroll), bound_(input.bound) {
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
    sum.inner_iterations = iterations_;
    for (const auto& [tables, a, b, rows] : blocks_) {
      Matrix cost;
      squared_costs(bound_, tables, w, cost);
      const UnrolledSinkhorn unrolled = unrolled_sinkhorn(cost, a, b, epsilon, iterations_);
      sum.objective += rows * unrolled.transport_cost;
      sum.marginal_error = std::max(sum.marginal_error, unrolled.marginal_error);
      pull_back_costs(bound_, tables, rows * unrolled.weights, w, sum.gradient);
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
  int iterations_;
  const Model& bound_;
  std::vector<Part> blocks_;
};

}  // namespace

Estimate estimate(const Robot& given, const Input& input) {
  const Robot robot = with_settings(given, input);
  require_hessian(robot, input);
  const std::vector<Start> starts = make_starts(input.problem, input.bound, robot.starts, input.run.seed);
  return descend_from_all(descents_of(robot, robot, input), input, starts);
}

// Relaxed sums make it easy to fit some rows and drop the others, so far from the answer the robust objective has more
// minima than the exact one: ROBOT's answer is one more start, and often leads to the lowest.
Estimate estimate(const RobotRobust& given, const Input& input) {
  RobotRobust robust = given;
  robust.robot = with_settings(given.robot, input);
  const Robot& robot = robust.robot;
  require_hessian(robot, input);
  std::vector<Start> starts = make_starts(input.problem, input.bound, robot.starts, input.run.seed);
  const Descents relaxed = descents_of(robust, robot, input);
  const bool knows_its_way = robot.starts.start.kind != StartKind::automatic || starts.front().covariance.size() > 0;
  if (knows_its_way || robot.descent.step.batch > 0) return descend_from_all(relaxed, input, starts);
  Run first_half = input.run, second_half = input.run;
  if (const auto& progress = input.run.progress) {
    first_half.progress = [&](double done, double total) { return progress(0.5 * done / total, 1); };
    second_half.progress = [&](double done, double total) { return progress(0.5 + 0.5 * done / total, 1); };
  }
  const Estimate exact =
      descend_from_all(descents_of(robot, robot, input), {input.problem, input.bound, first_half}, starts);
  starts.push_back({"robot", exact.candidates.front().parameters, {}, 0});
  Estimate result = descend_from_all(relaxed, {input.problem, input.bound, second_half}, starts);
  result.evaluations += exact.evaluations;
  result.stopped = result.stopped || exact.stopped;
  return result;
}

Estimate estimate(const RobotUnrolled& options, const Input& input) {
  if (options.descent.optimizer == Optimizer::trust_region || options.descent.step.batch > 0) {
    throw InvalidInput("robot-unrolled has gradients of all rows only: no trust-region optimiser, no batches");
  }
  const std::vector<Start> starts = make_starts(input.problem, input.bound, options.starts, input.run.seed);
  Descents unrolled{.name = "robot-unrolled",
                    .evaluator = evaluator_options(options.precision, options.smoothing.resolved()),
                    .descent = options.descent,
                    .max_iterations = options.limit.max_iterations,
                    .objective = UnrolledObjective(options, input)};
  if (options.descent.optimizer == Optimizer::automatic) unrolled.descent.optimizer = Optimizer::lbfgs;
  Estimate result = descend_from_all(unrolled, input, starts);
  result.objective_name = "transport after unrolled iterations";
  result.solves_transport = false;
  return result;
}

}  // namespace unshuffle
