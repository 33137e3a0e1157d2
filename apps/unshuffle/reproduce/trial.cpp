#include "reproduce/trial.hpp"

#include "unshuffle/core/error.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle::app {

Sample sample_of(const SimulateOptions& options) {
  Simulation simulation = simulate(options);
  Sample sample{std::move(simulation.problem), std::move(simulation.test), {}, {}};
  for (std::size_t row = 0; row < simulation.permutation.size(); ++row) {
    sample.truth.push_back({static_cast<Index>(row), simulation.permutation[row]});
  }
  return sample;
}

double relative_error(const Model& bound, const Vector& w, const Problem& linked) {
  const Vector y = linked.y.col(0);
  const Vector residual = predict_linked(bound, linked.x, linked.z, w).col(0) - y;
  return residual.squaredNorm() / (y.array() - y.mean()).matrix().squaredNorm();
}

double transport_error(const Problem& unlinked, const Model& model, const Vector& w) {
  const Problem problem = completed(unlinked);
  const auto bound = model.bound_to(problem);
  EvaluatorOptions options;
  options.epsilon.value = 1e-5;
  const Vector y = problem.y.col(0);
  return Evaluator(problem, *bound, options).evaluate(w).transport_cost / (y.array() - y.mean()).matrix().squaredNorm();
}

namespace {

Estimator estimator_for(const std::string& method, const TrialOptions& trial) {
  const bool robot = method == "rs + robot" || method == "robot-paper";
  Estimator estimator = estimator_named(robot ? "robot" : method).value();
  for (const auto& [name, standard] : option_values(estimator)) {
    for (const auto& [wanted, value] : trial.options) {
      if (wanted == name) set_option(estimator, name, value);
    }
  }
  if (method == "robot-paper") set_option(estimator, "paper_settings", true);
  return estimator;
}

}  // namespace

Result fit_named(const std::string& method, const Sample& sample, const Model& model, TrialOptions trial) {
  const bool from_consensus = method == "rs + robot" || method == "robot-paper" ||
                              (trial.row_hint && (method == "am" || method == "em" || method == "hard-em"));
  if (from_consensus) {
    const Vector start = sample.consensus ? *sample.consensus : fit_named("rs", sample, model, trial).parameters;
    trial.options.emplace_back("start", std::vector<double>(start.begin(), start.end()));
    trial.options.emplace_back("starts", std::int64_t{1});
  }
  Problem problem = sample.train;
  problem.order = trial.row_hint ? RowOrder::probably_linked : RowOrder::unknown;
  if (method == "oracle") {
    problem.known = sample.truth;
    problem.response_groups = problem.feature_groups = {};  // events in a wrong gate have true partners all the same
  }
  return fit(std::move(problem), model, estimator_for(method, trial), {.seed = trial.seed, .threads = 1}).result();
}

Measurements outcome_of(Measurement place, const Result& made, double error) {
  Measurement seconds = place;
  place.quantity = "relative_error";
  place.value = error;
  seconds.quantity = "seconds";
  seconds.value = made.course.seconds;
  return {place, seconds};
}

std::optional<Result> fit_where_possible(const std::string& method, const Sample& sample, const Model& model,
                                         const TrialOptions& trial) {
  try {
    return fit_named(method, sample, model, trial);
  } catch (const InvalidInput&) {
    return {};
  }
}

Measurements try_method(const Measurement& place, const Sample& sample, const Model& model, const TrialOptions& trial) {
  const std::optional<Result> made = fit_where_possible(place.method, sample, model, trial);
  if (!made) return {};
  return outcome_of(place, *made, relative_error(*model.bound_to(sample.train), made->parameters, sample.test));
}

}  // namespace unshuffle::app
