#include "reproduce/trial.hpp"

#include "unshuffle/core/error.hpp"
#include "unshuffle/estimators/methods.hpp"
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

Fit fit_named(const std::string& method, const Sample& sample, const Model& model, FitOptions options) {
  const bool from_consensus = method == "rs + robot" || method == "robot-paper" ||
                              (options.row_hint && (method == "am" || method == "em" || method == "hard-em"));
  if (from_consensus) {
    options.start_kind = StartKind::user;
    options.start = sample.consensus ? *sample.consensus : fit_named("rs", sample, model, options).parameters;
    options.starts = 1;
  }
  Problem problem = sample.train;
  if (method == "oracle") {
    problem.known = sample.truth;
    problem.response_groups = problem.feature_groups = {};  // events in a wrong gate have true partners all the same
  }
  const bool robot = method == "rs + robot" || method == "robot-paper";
  options.method = robot ? Method::robot : method_named(method).value();
  if (method == "robot-paper") {
    const bool linear = model.bound_to(problem)->linear_in_parameters();
    options = with_paper_settings(std::move(options), problem.responses(), linear);
  }
  return fit(problem, model, options);
}

Measurements outcome_of(Measurement place, const Fit& made, double error) {
  Measurement seconds = place;
  place.quantity = "relative_error";
  place.value = error;
  seconds.quantity = "seconds";
  seconds.value = made.seconds;
  return {place, seconds};
}

std::optional<Fit> fit_where_possible(const std::string& method, const Sample& sample, const Model& model,
                                      const FitOptions& options) {
  try {
    return fit_named(method, sample, model, options);
  } catch (const InvalidInput&) {
    return {};
  }
}

Measurements try_method(const Measurement& place, const Sample& sample, const Model& model, const FitOptions& options) {
  const std::optional<Fit> made = fit_where_possible(place.method, sample, model, options);
  if (!made) return {};
  return outcome_of(place, *made, relative_error(*model.bound_to(sample.train), made->parameters, sample.test));
}

}  // namespace unshuffle::app
