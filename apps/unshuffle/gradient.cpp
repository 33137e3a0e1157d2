// unshuffle gradient: one evaluation of the objective at given parameters, for checking and timing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/read_json.hpp"
#include "core/threads.hpp"
#include "estimator_options.hpp"
#include "options.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/objective/feasible.hpp"

namespace unshuffle::app {
namespace {

/// Options of descents do not apply to a single evaluation.
std::vector<EstimatorEntry> evaluated() {
  std::vector<EstimatorEntry> entries = entries_named({"robot", "robot-robust"});
  const std::vector<OptionInfo> of_plan = describe_options<PlanAtAnswer>();
  for (EstimatorEntry& entry : entries) {
    std::erase_if(entry.options, [&](const OptionInfo& info) {
      const bool robust = info.name == "unmatched" || info.name == "rho1" || info.name == "rho2";
      return !robust && info.name != "objective" &&
             std::none_of(of_plan.begin(), of_plan.end(), [&](const OptionInfo& one) { return one.name == info.name; });
    });
  }
  return entries;
}

struct GradientCommand {
  explicit GradientCommand(CLI::App& app) : method(app, evaluated()), options(app, evaluated()) {}

  TableOptions tables;
  MethodFlags method;
  EstimatorFlags options;
  ModelOptions model;
  Execution execution;
  std::string at;
  int repeat = 5;
  bool json = false;
};

struct Timed {
  Evaluation evaluation;
  double cold = 0;
  double warm = 0;  ///< Median.
};

template <class Action>
double seconds(Action action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Timed measure(Evaluator& evaluator, const Vector& w, int repeat) {
  Timed timed;
  timed.evaluation = evaluator.evaluate(w);  // Resolves a relative ε and touches the memory once.
  evaluator.reset();
  timed.cold = seconds([&] { timed.evaluation = evaluator.evaluate(w); });
  std::vector<double> warm;
  for (int round = 1; round <= repeat; ++round) {
    // A step of the size a descent takes near convergence; its sign alternates, so w stays put.
    const Vector moved = w * (1 + (round % 2 == 1 ? 1e-3 : -1e-3));
    warm.push_back(seconds([&] { (void)evaluator.evaluate(moved); }));
  }
  const auto middle = warm.begin() + static_cast<long>(warm.size() / 2);
  std::nth_element(warm.begin(), middle, warm.end());
  timed.warm = *middle;
  return timed;
}

nlohmann::ordered_json to_json(const Timed& timed, const Evaluator& evaluator, const Vector& w,
                               const std::vector<std::string>& names) {
  const Evaluation& evaluation = timed.evaluation;
  nlohmann::ordered_json gradient = nlohmann::ordered_json::object();
  for (std::size_t at = 0; at < names.size(); ++at) gradient[names[at]] = evaluation.gradient[static_cast<Index>(at)];
  return {{"objective", evaluation.objective},
          {"objective_kind", name_of(evaluator.options().objective)},
          {"transport_cost", evaluation.transport_cost},
          {"gradient", gradient},
          {"marginal_error", evaluation.marginal_error},
          {"compression_error", evaluation.compression_error},
          {"converged", evaluation.converged},
          {"message", evaluation.message},
          {"inner_iterations", evaluation.inner_iterations},
          {"epsilon", {{"value", evaluator.epsilon()}, {"relative", evaluator.epsilon() / evaluator.largest_cost(w)}}},
          {"backend", name_of(evaluator.backend())},
          {"seconds_cold", timed.cold},
          {"seconds_warm", timed.warm}};
}

void print_text(const nlohmann::ordered_json& out) {
  fmt::print("{:<18}{:.10g} ({})\n", "objective", out["objective"].get<double>(),
             out["objective_kind"].get<std::string>());
  for (const auto& [name, value] : out["gradient"].items()) {
    fmt::print("{:<18}{:.10g}\n", "d/d " + name, value.get<double>());
  }
  fmt::print("{:<18}{:.3g}\n", "marginal error", out["marginal_error"].get<double>());
  fmt::print("{:<18}{:.6g} ({:.3g} of the largest cost)\n", "epsilon", out["epsilon"]["value"].get<double>(),
             out["epsilon"]["relative"].get<double>());
  fmt::print("{:<18}{}\n", "backend", out["backend"].get<std::string>());
  fmt::print("{:<18}{:.6f} s cold, {:.6f} s warm\n", "time", out["seconds_cold"].get<double>(),
             out["seconds_warm"].get<double>());
  if (!out["converged"].get<bool>()) fmt::print("{:<18}{}\n", "not converged", out["message"].get<std::string>());
}

/// The model to evaluate: that of a fit.json as it was fitted, or a new one for a file written by hand.
std::unique_ptr<Model> model_for(const GradientCommand& command, const std::string& text, const Problem& problem) {
  const auto parsed = read_json(text, command.at);
  const bool is_fit = parsed.is_object() && parsed.contains("model_state") && command.model.model_given->count() == 0;
  if (!is_fit) return command.model.make()->bound_to(problem);
  const SavedFit saved = fit_from_json(text, command.at);
  return restore_model(saved.context.model, saved.context.intercept && !command.model.no_intercept, problem.x_names,
                       problem.z_names, problem.y_names, saved.context.model_state);
}

int run(const GradientCommand& command) {
  const Estimator estimator = command.method.estimator(command.options);
  require_threads(command.execution.threads);
  if (command.repeat < 1) throw InvalidInput(fmt::format("--repeat = {} must be at least 1", command.repeat));
  const Problem problem = completed(load(command.tables).problem);
  const std::string text = read_file(command.at);
  const auto model = model_for(command, text, problem);
  const Vector w = in_order(parameters_from_json(text, command.at), model->parameter_names(), command.at);
  require_feasible(problem, *model, estimator);
  use_threads(command.execution.threads);
  Evaluator evaluator(problem, *model,
                      plan_options(estimator, double(problem.responses()), double(problem.features())));
  require_finite_costs(evaluator, w);
  const Timed timed = measure(evaluator, w, command.repeat);
  const auto out = to_json(timed, evaluator, w, model->parameter_names());
  if (command.json) {
    fmt::print("{}", json_text(out, 2));
  } else {
    print_text(out);
  }
  return timed.evaluation.converged ? 0 : 1;
}

}  // namespace

Command add_gradient(CLI::App& root) {
  CLI::App* app = root.add_subcommand("gradient", "Evaluate the objective and its gradient once, and time it.");
  const auto command = std::make_shared<GradientCommand>(*app);
  add_table_options(*app, command->tables);
  add_model_options(*app, command->model);
  add_threads_option(*app, command->execution);
  app->add_option("--at", command->at,
                  "JSON with `coefficients` (name → value) and optionally `intercept`; a fit.json works.")
      ->required();
  app->add_option("--repeat", command->repeat,
                  "Warm evaluations at slightly changed parameters; the median time is printed.")
      ->capture_default_str();
  app->add_flag("--json", command->json, "Print JSON.");
  app->footer("Example:\n  unshuffle gradient responses.csv features.csv --response y --at fit.json --repeat 9 --json");
  return {app, [command] {
            settle(command->tables, command->model);
            return run(*command);
          }};
}

}  // namespace unshuffle::app
