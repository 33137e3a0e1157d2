#include "estimators/descent.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/random.hpp"
#include "core/special.hpp"
#include "core/squares.hpp"
#include "objective/batch.hpp"

namespace unshuffle {

namespace {

bool first_order(Optimizer optimizer) { return optimizer == Optimizer::momentum || optimizer == Optimizer::adam; }

constexpr Index few_parameters = 200;

/// A Hessian costs about two gradients. From a start of known uncertainty Newton needs few enough steps to pay for
/// that; from far away it needs as many as quasi-Newton.
Optimizer chosen_optimizer(Optimizer asked, Backend backend, const Start& start) {
  if (asked != Optimizer::automatic) return asked;
  const bool near = start.covariance.size() > 0, few = start.parameters.size() <= few_parameters;
  return backend == Backend::sorted && near && few ? Optimizer::trust_region : Optimizer::lbfgs;
}

/// The objective in coordinates u, with a record of its evaluations.
class Descent {
 public:
  Descent(const DescentTask& task, const Start& start, int index, const Tick& tick)
      : task_(task),
        index_(index),
        tick_(tick),
        evaluator_(task.problem, task.bound, task.evaluator),
        optimizer_(chosen_optimizer(task.options.optimizer, evaluator_.backend(), start)),
        random_(task.seed, Stream::batches, std::uint64_t(index)) {
    coordinates_ = coordinates_for(start, task.problem, task.bound, task.options.start_confidence);
    if (first_order(optimizer_)) {  // learning rates refer to w itself
      coordinates_.transform.setIdentity();
      coordinates_.radius = std::numeric_limits<double>::infinity();
    }
    result_.candidate.start = start.kind;
    result_.noise_sd = start.noise_sd;
  }

  Descended run() {
    Vector u = Vector::Zero(task_.bound.parameters());
    for (const double epsilon : epsilon_schedule(task_.options.epsilon_start, task_.evaluator.epsilon.value)) {
      evaluator_.set_epsilon(epsilon);
      const Minimum minimum = minimise(u);
      u = minimum.at;
      record(minimum);
      if (minimum.stopped) break;
    }
    result_.candidate.parameters = coordinates_.to_parameters(u);
    return std::move(result_);
  }

 private:
  Sample sample(const Vector& u, bool with_hessian) {
    const Vector w = coordinates_.to_parameters(u);
    const Evaluation evaluation = evaluate(w, with_hessian);
    ++result_.evaluations;
    last_marginal_error_ = evaluation.marginal_error;
    last_inner_iterations_ = evaluation.inner_iterations;
    Sample result{evaluation.objective, coordinates_.transform.transpose() * evaluation.gradient, {}};
    if (with_hessian) result.hessian = coordinates_.transform.transpose() * evaluation.hessian * coordinates_.transform;
    return result;
  }

  Evaluation evaluate(const Vector& w, bool with_hessian) {
    if (task_.objective) return task_.objective(w, evaluator_.epsilon(), with_hessian);
    const Index batch = task_.options.step.batch;
    if (batch > 0) return evaluate_batch(task_.problem, task_.bound, batch_options(), w, batch, random_);
    return evaluator_.evaluate(w, with_hessian);
  }

  [[nodiscard]] EvaluatorOptions batch_options() const {
    EvaluatorOptions result = task_.evaluator;
    result.team = nullptr;
    result.epsilon = {.value = evaluator_.epsilon(), .relative = false};
    return result;
  }

  bool watch(const Sample& here, double gradient_norm) {
    result_.trace.push_back({.start = index_,
                             .iteration = iteration_++,
                             .epsilon = evaluator_.epsilon(),
                             .objective = here.value,
                             .gradient_norm = gradient_norm / coordinates_.unit,
                             .marginal_error = last_marginal_error_,
                             .inner_iterations = last_inner_iterations_});
    return tick_();
  }

  Minimum minimise(const Vector& from) {
    const SmoothFunction f = [this](const Vector& u, bool with_hessian) { return sample(u, with_hessian); };
    const Watch watcher = [this](int, const Sample& here, double norm) { return watch(here, norm); };
    const StepOptions& step = task_.options.step;
    StopRule stop;
    stop.max_iterations = iteration_limit(task_);
    stop.gradient_tolerance = task_.options.gradient_tolerance * coordinates_.unit;
    stop.radius = coordinates_.radius;
    if (first_order(optimizer_)) {
      // In raw coordinates every parameter has its own unit; the mean natural step converts.
      stop.gradient_tolerance /= natural_steps(task_.problem, task_.bound, coordinates_.origin).norm();
      if (step.batch > 0) stop.gradient_tolerance = 0;  // a batch's gradient is never the whole one
    }
    switch (optimizer_) {
      case Optimizer::momentum:
        return momentum_descent(f, from, stop, step, watcher);
      case Optimizer::adam:
        return adam(f, from, stop, step, watcher);
      case Optimizer::trust_region:
        return trust_region(f, from, stop, watcher);
      default:
        return lbfgs(f, from, stop, watcher);
    }
  }

  void record(const Minimum& minimum) {
    result_.candidate.objective = minimum.value;
    result_.candidate.converged = minimum.converged;
    result_.candidate.iterations += minimum.iterations;
    result_.candidate.message = minimum.message;
    if (minimum.on_boundary) result_.candidate.message += ", at the edge of the start's confidence region";
    result_.stopped = minimum.stopped;
    result_.on_boundary = minimum.on_boundary;
  }

  const DescentTask& task_;
  int index_;
  const Tick& tick_;
  Evaluator evaluator_;
  Optimizer optimizer_;
  RandomStream random_;
  Coordinates coordinates_;
  Descended result_;
  int iteration_ = 0;
  double last_marginal_error_ = 0;
  int last_inner_iterations_ = 0;
};

}  // namespace

Coordinates coordinates_for(const Start& start, const Problem& problem, const Model& bound, double start_confidence) {
  Coordinates result{start.parameters, {}, std::numeric_limits<double>::infinity(), 1};
  const auto rows = static_cast<double>(problem.responses());
  if (start.covariance.size() > 0 && start_confidence > 0) {
    result.transform = start.covariance.llt().matrixL();
    result.radius = std::sqrt(chi_squared_quantile(start_confidence, double(bound.parameters())));
    result.unit = rows * start.noise_sd * start.noise_sd;
    return result;
  }
  result.transform = natural_steps(problem, bound, start.parameters).asDiagonal();
  result.unit = squares_about_mean(problem.y);
  if (!(result.unit > 0)) result.unit = 1;
  return result;
}

std::vector<double> epsilon_schedule(double epsilon_start, double epsilon) {
  std::vector<double> stages;
  if (epsilon_start > epsilon) {
    const double ratio = epsilon_start / epsilon;
    const double count = std::clamp(std::ceil(std::log(ratio) / std::log(4.0)), 1.0, 8.0);
    for (double k = 0; k < count; ++k) stages.push_back(epsilon_start * std::pow(ratio, -k / count));
  }
  stages.push_back(epsilon);
  return stages;
}

int iteration_limit(const DescentTask& task) {
  if (task.max_iterations > 0) return task.max_iterations;
  return first_order(task.options.optimizer) ? 2000 : 200;
}

Descended descend(const DescentTask& task, const Start& start, int index, const Tick& tick) {
  return Descent(task, start, index, tick).run();
}

}  // namespace unshuffle
