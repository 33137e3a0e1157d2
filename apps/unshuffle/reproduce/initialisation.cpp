// Ten random starts each: where alternating minimisation and ROBOT end.
#include <fmt/format.h>

#include "core/random.hpp"
#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle::app {
namespace initialisation_parts {

constexpr int starts = 10;

/// Mean squared residual of the best matching at w.
double training_residual(const Problem& given, const Vector& w) {
  const Problem problem = completed(given);
  const auto bound = Linear(false).bound_to(problem);
  EvaluatorOptions options;
  options.epsilon.value = 1e-7;
  return Evaluator(problem, *bound, options).evaluate(w).transport_cost / double(problem.responses());
}

Measurements measure(const Settings& settings) {
  std::vector<Task> tasks;
  for (int draw = 0; draw < settings.repetitions(); ++draw) {
    for (int start = 0; start < starts; ++start) {
      for (const std::string method : {"am", "robot"}) {
        tasks.emplace_back([=, seed = settings.seed + std::uint64_t(draw)]() -> Measurements {
          const Sample sample = sample_of({.design = Design::sensing, .shuffle = 1, .seed = seed});
          std::vector<double> from(static_cast<std::size_t>(sample.train.z.cols()));
          RandomStream random(seed, 73 + std::uint64_t(start));
          for (double& value : from) value = random.normal();
          const Result result =
              fit_named(method, sample, Linear(false), {.options = {{"epsilon", 1e-2}, {"start", from}}});
          const auto bound = Linear(false).bound_to(sample.train);
          const double error = relative_error(*bound, result.parameters, sample.test);
          return {
              {"start", double(start), draw, method, "residual", training_residual(sample.train, result.parameters)},
              {"start", double(start), draw, method, "relative_error", error}};
        });
      }
    }
  }
  return run_all(tasks, settings);
}

double share_below_one(const Measurements& all, const std::string& method) {
  const Measurements errors = select(all, {"", method, "relative_error"});
  const auto good = std::count_if(errors.begin(), errors.end(), [](const Measurement& one) { return one.value < 1; });
  return double(good) / double(errors.size());
}

Findings judge(const Measurements& all) {
  Findings findings;
  const double robot = share_below_one(all, "robot"), am = share_below_one(all, "am");
  findings.claims.push_back(
      {"ROBOT finds good solutions (test error below 1) from 30 % of the starts, AM from none.",
       robot >= 0.3 && am == 0,
       fmt::format("ROBOT from {:.0f} %, AM from {:.0f} % of the starts.", 100 * robot, 100 * am)});
  findings.claims.push_back({"More starts succeed with ROBOT than with AM.", robot > am,
                             fmt::format("{:.0f} % against {:.0f} %.", 100 * robot, 100 * am)});
  return findings;
}

}  // namespace initialisation_parts

Experiment initialisation_experiment() {
  return {"initialisation", "Sensitivity to the start: percentiles over ten random starts, AM against ROBOT.",
          initialisation_parts::measure, initialisation_parts::judge};
}

}  // namespace unshuffle::app
