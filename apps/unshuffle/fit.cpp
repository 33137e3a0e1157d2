// unshuffle fit: two tables in, a regression out.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <memory>

#include "commands.hpp"
#include "options.hpp"
#include "pairs.hpp"
#include "progress.hpp"
#include "unshuffle/data/output_file.hpp"
#include "unshuffle/error.hpp"
#include "unshuffle/fit/match.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/report/json.hpp"

namespace unshuffle::app {
namespace {

struct FitCommand {
  TableOptions tables;
  MethodOptions method;
  std::string hint = "auto";
  std::string start = "auto";
  int starts = 0;
  double start_confidence = 0.95;
  std::string optimizer = "auto";
  int max_iterations = 0;
  double learning_rate = 1e-4;
  double momentum = 0.9;
  long batch = 0;
  double epsilon_start = 0;
  std::uint64_t seed = 0;
  std::string out;
  std::string pairs;
  std::string trace;
  bool json = false;
  CLI::Option* epsilon_start_given = nullptr;
  CLI::Option* learning_rate_given = nullptr;
  CLI::Option* momentum_given = nullptr;
  CLI::Option* batch_given = nullptr;
};

void add_descent_options(CLI::App& app, FitCommand& command) {
  app.add_option(
         "--hint", command.hint,
         "rows: row i of one table probably belongs to row i of the other; used to start from. Without it: rows "
         "for one table, none for two.")
      ->check(CLI::IsMember({"rows", "none"}));
  app.add_option("--start", command.start, "auto, ls, ransac, group-means, random, or a fit.json to start from.")
      ->capture_default_str();
  app.add_option("--starts", command.starts, "How many starts; 0 chooses.")->capture_default_str();
  app.add_option("--start-confidence", command.start_confidence,
                 "A RANSAC start knows its own uncertainty; the descent stays within this confidence region of it. 0: "
                 "free descent.")
      ->capture_default_str();
  app.add_option("--optimizer", command.optimizer, "How the objective is minimised.")
      ->check(CLI::IsMember({"auto", "trust-region", "lbfgs", "momentum", "adam"}))
      ->capture_default_str();
  app.add_option("--max-iterations", command.max_iterations, "Per start; 0 chooses.")->capture_default_str();
  command.learning_rate_given =
      app.add_option("--learning-rate", command.learning_rate, "Step of momentum and adam.")->capture_default_str();
  command.momentum_given =
      app.add_option("--momentum", command.momentum, "Of the momentum optimiser.")->capture_default_str();
  command.batch_given = app.add_option("--batch", command.batch, "Rows per mini-batch of momentum and adam; 0: all.")
                            ->capture_default_str();
  command.epsilon_start_given =
      app.add_option("--epsilon-start", command.epsilon_start,
                     "Begin with this larger ε (meant as --epsilon or --epsilon-abs is) and go "
                     "down.");
  app.add_option("--seed", command.seed, "Of everything random; same seed, same result.")->capture_default_str();
}

void add_output_options(CLI::App& app, FitCommand& command) {
  app.add_option("--out", command.out, "Write the fit as JSON; predict, match, gradient and --start read it.");
  app.add_option("--pairs", command.pairs, "Write one-to-one pairs as CSV; rows are counted from 0.");
  app.add_option("--trace", command.trace, "Write every iteration of every start as CSV.");
  app.add_flag("--json", command.json, "Print JSON instead of a table.");
}

StartKind to_start_kind(const std::string& start) {
  if (start == "auto") return StartKind::automatic;
  if (start == "ls") return StartKind::least_squares;
  if (start == "ransac") return StartKind::ransac;
  if (start == "group-means") return StartKind::group_means;
  if (start == "random") return StartKind::random;
  return StartKind::user;
}

Optimizer to_optimizer(const std::string& optimizer) {
  if (optimizer == "trust-region") return Optimizer::trust_region;
  if (optimizer == "lbfgs") return Optimizer::lbfgs;
  if (optimizer == "momentum") return Optimizer::momentum;
  if (optimizer == "adam") return Optimizer::adam;
  return Optimizer::automatic;
}

void require(bool holds, std::string_view option, double value, std::string_view expected) {
  if (!holds) throw InvalidInput(fmt::format("{} = {} must be {}", option, value, expected));
}

/// Options that only some optimisers read are refused with the others, not ignored.
void require_stepwise(const FitCommand& command) {
  const bool momentum = command.optimizer == "momentum";
  const bool stepwise = momentum || command.optimizer == "adam";
  const auto check = [](const CLI::Option& option, bool has_meaning, std::string_view with) {
    if (option.count() > 0 && !has_meaning) {
      throw InvalidInput(fmt::format("{} has a meaning with {} only", option.get_name(), with));
    }
  };
  check(*command.learning_rate_given, stepwise, "--optimizer momentum or adam");
  check(*command.batch_given, stepwise, "--optimizer momentum or adam");
  check(*command.momentum_given, momentum, "--optimizer momentum");
}

FitOptions to_options(const FitCommand& command) {
  FitOptions options = to_fit_options(command.method);
  const bool one_table = command.tables.features.empty();
  options.row_hint = command.hint == "rows" || (command.hint == "auto" && one_table);
  options.start_kind = to_start_kind(command.start);
  options.starts = command.starts;
  options.start_confidence = command.start_confidence;
  options.optimizer = to_optimizer(command.optimizer);
  options.max_iterations = command.max_iterations;
  options.learning_rate = command.learning_rate;
  options.momentum = command.momentum;
  options.batch = command.batch;
  options.seed = command.seed;
  require(command.starts >= 0, "--starts", command.starts, "at least 0");
  require(command.start_confidence >= 0 && command.start_confidence < 1, "--start-confidence", command.start_confidence,
          "at least 0 and below 1");
  require(command.max_iterations >= 0, "--max-iterations", command.max_iterations, "at least 0");
  require(command.learning_rate > 0 && std::isfinite(command.learning_rate), "--learning-rate", command.learning_rate,
          "> 0");
  require(command.momentum >= 0 && command.momentum < 1, "--momentum", command.momentum, "at least 0 and below 1");
  require(command.batch >= 0, "--batch", static_cast<double>(command.batch), "at least 0");
  require_stepwise(command);
  if (command.epsilon_start_given->count() > 0) {
    require(command.epsilon_start > options.epsilon.value && std::isfinite(command.epsilon_start), "--epsilon-start",
            command.epsilon_start, fmt::format("above ε = {}", options.epsilon.value));
    options.epsilon_start = command.epsilon_start;
  }
  return options;
}

std::string trace_csv(const Fit& fit) {
  std::string out = "start,iteration,epsilon,objective,gradient_norm,marginal_error,inner_iterations\n";
  for (const TracePoint& point : fit.trace) {
    out += fmt::format("{},{}", point.start, point.iteration);
    for (const double value : {point.epsilon, point.objective, point.gradient_norm, point.marginal_error}) {
      out += ',';
      append_number(out, value);
    }
    out += fmt::format(",{}\n", point.inner_iterations);
  }
  return out;
}

Matching match_at(const Problem& problem, const Model& bound, FitOptions options, const Fit& fit) {
  options.epsilon = {.value = fit.epsilon, .relative = false};
  const Problem whole = completed(problem);
  Evaluator evaluator(whole, bound, evaluator_options(options, whole));
  return match(evaluator, whole, bound, fit.parameters);
}

void write_outputs(const FitCommand& command, const Fit& fit, const FitContext& context,
                   const std::string& pairs_content) {
  if (!command.out.empty()) write_whole_file(command.out, to_json(fit, context));
  if (!command.pairs.empty()) write_whole_file(command.pairs, pairs_content);
  if (!command.trace.empty()) write_whole_file(command.trace, trace_csv(fit));
}

void print(const FitCommand& command, const Fit& fit, const FitContext& context) {
  if (command.json) {
    fmt::print("{}", to_json(fit, context));
    return;
  }
  if (command.tables.quiet) return;
  fmt::print("{}", fit.summary());
  for (const auto& path : {command.out, command.pairs, command.trace}) {
    if (!path.empty()) fmt::print("Wrote {}\n", path);
  }
}

int run(const FitCommand& command) {
  FitOptions options = to_options(command);
  const auto model = make_model(command.method.model, !command.method.no_intercept);
  for (const std::string& path : {command.out, command.pairs, command.trace}) {
    if (!path.empty()) require_writable(path);
  }
  const TablesAsProblem loaded = load(command.tables);
  const Problem& problem = loaded.problem;
  const auto bound = model->bound_to(problem);
  require_estimable(problem, *bound);
  require_memory(problem, *bound, options.backend);
  if (options.start_kind == StartKind::user) {
    const NamedParameters start = parameters_from_json(read_file(command.start), command.start);
    options.start = in_order(start, bound->parameter_names(), command.start);
  }
  options.progress = progress_bar(command.tables.quiet);
  const Fit result = fit(problem, *model, options);

  FitContext context{.columns = loaded.columns,
                     .one_table = command.tables.features.empty(),
                     .intercept = !command.method.no_intercept,
                     .model_state = model_state(*bound),
                     .tolerance = options.tolerance,
                     .unmatched = options.unmatched,
                     .rho1 = options.rho1,
                     .rho2 = options.rho2};
  const std::string pairs_content = command.pairs.empty() ? "" : pairs_csv(match_at(problem, *bound, options, result));
  write_outputs(command, result, context, pairs_content);
  print(command, result, context);
  return result.status == Fit::Status::converged ? 0 : 1;
}

}  // namespace

Command add_fit(CLI::App& root) {
  CLI::App* app = root.add_subcommand("fit", "Fit a regression to two tables whose row links are lost.");
  const auto command = std::make_shared<FitCommand>();
  add_table_options(*app, command->tables);
  add_method_options(*app, command->method);
  add_descent_options(*app, *command);
  add_output_options(*app, *command);
  app->footer(
      "Example: wages in one file, people in another, some of them in one only\n"
      "  unshuffle fit wages.csv people.csv --response wage --robust --unmatched 0.1 --group city=town \\\n"
      "      --out fit.json --pairs pairs.csv");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
