// unshuffle fit: two tables in, a regression out.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "course.hpp"
#include "options.hpp"
#include "pairs.hpp"
#include "progress.hpp"
#include "search.hpp"
#include "together.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/estimators/methods.hpp"
#include "unshuffle/large/fit.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/report/html.hpp"
#include "unshuffle/report/saved.hpp"

namespace unshuffle::app {
namespace {

struct FitCommand {
  TableOptions tables;
  MethodOptions method;
  SearchOptions search;
  double start_confidence = 0.95;
  std::string optimizer = "auto";
  double learning_rate = 1e-4;
  double momentum = 0.9;
  long batch = 0;
  double epsilon_start = 0;
  std::string out;
  std::string pairs;
  std::string trace;
  std::string links;
  std::string report;
  std::string report_truth;
  bool json = false;
  bool verbose = false;
  std::string checkpoint;
  bool stream = false;
  std::string scratch;
  CLI::Option* scratch_given = nullptr;
  CLI::Option* links_given = nullptr;
  CLI::Option* report_truth_given = nullptr;
  CLI::Option* trace_given = nullptr;
  CLI::Option* start_confidence_given = nullptr;
  CLI::Option* optimizer_given = nullptr;
  CLI::Option* epsilon_start_given = nullptr;
  CLI::Option* learning_rate_given = nullptr;
  CLI::Option* momentum_given = nullptr;
  CLI::Option* batch_given = nullptr;
};

void add_descent_options(CLI::App& app, FitCommand& command) {
  command.start_confidence_given =
      app.add_option("--start-confidence", command.start_confidence,
                     "A RANSAC start knows its own uncertainty; the descent stays within this confidence region of it. "
                     "0: free descent.")
          ->capture_default_str();
  command.optimizer_given =
      app.add_option("--optimizer", command.optimizer, "How the robot methods minimise their objective.")
          ->check(CLI::IsMember({"auto", "trust-region", "lbfgs", "momentum", "adam"}))
          ->capture_default_str();
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
}

std::string traced_methods() {
  std::vector<std::string_view> names;
  for (const MethodInfo& info : known_methods()) {
    if (info.traced) names.push_back(info.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_output_options(CLI::App& app, FitCommand& command) {
  app.add_option("--out", command.out, "Write the fit as JSON; predict, match, gradient and --start read it.");
  app.add_option("--pairs", command.pairs, "Write one-to-one pairs as CSV; rows are counted from 0.");
  command.trace_given = app.add_option(
      "--trace", command.trace, fmt::format("Write every iteration of every start as CSV; for {}.", traced_methods()));
  command.links_given = app.add_option(
      "--links", command.links,
      "Write response_row,probability as CSV: how likely each row is linked in the order given (mixture).");
  app.add_option("--report", command.report, "Write one HTML page with the verdict, pictures and numbers.");
  command.report_truth_given =
      app.add_option("--report-truth", command.report_truth,
                     "Report: truth.json of unshuffle simulate; match probabilities are held against it, the fit does "
                     "not see it.");
  app.add_flag("--json", command.json, "Print JSON instead of a table.");
  app.add_option("--checkpoint", command.checkpoint,
                 "Keep finished starts and bootstrap samples in this file; the same command goes on from it after it "
                 "was cut off.");
}

void add_size_options(CLI::App& app, FitCommand& command) {
  app.add_flag("--stream", command.stream,
               "Tables larger than memory: rows are kept in a file and read again for every step.");
  command.scratch_given = app.add_option("--scratch", command.scratch, "Folder for that file; the system's own else.")
                              ->check(CLI::ExistingDirectory);
}

Optimizer to_optimizer(const std::string& optimizer) {
  if (optimizer == "trust-region") return Optimizer::trust_region;
  if (optimizer == "lbfgs") return Optimizer::lbfgs;
  if (optimizer == "momentum") return Optimizer::momentum;
  if (optimizer == "adam") return Optimizer::adam;
  return Optimizer::automatic;
}

/// Options that only some methods and optimisers read are refused with the others, not ignored.
void require_read(const FitCommand& command, Method method) {
  require_read_by(method, command.search);
  const bool robot = method == Method::robot || method == Method::robot_robust || method == Method::robot_unrolled;
  for (const CLI::Option* option :
       {command.start_confidence_given, command.optimizer_given, command.epsilon_start_given}) {
    require_meaning(*option, robot, "the robot methods");
  }
  require_meaning(*command.trace_given, info_of(method).traced, "--method " + traced_methods());
  const bool linked = method == Method::automatic || method == Method::mixture;
  require_meaning(*command.links_given, linked, "--method mixture or auto");
  require_meaning(*command.report_truth_given, !command.report.empty(), "--report");
  const bool am = method == Method::am && (command.search.am_step == "gradient" || command.search.paper_settings);
  const bool momentum = (robot && command.optimizer == "momentum") || am;
  const bool stepwise = momentum || (robot && command.optimizer == "adam");
  require_meaning(*command.learning_rate_given, stepwise, "--optimizer momentum or adam, or am --am-step gradient,");
  require_meaning(*command.batch_given, stepwise, "--optimizer momentum or adam, or am --am-step gradient,");
  require_meaning(*command.momentum_given, momentum, "--optimizer momentum, or am --am-step gradient,");
}

/// Without --method, an option that robot reads and auto does not asks for robot.
Method implied_method(const FitCommand& command) {
  for (const auto& [option, methods] : command.search.special) {
    if (option->count() > 0 && methods.front() == Method::robot) return Method::robot;
  }
  for (const CLI::Option* option :
       {command.start_confidence_given, command.optimizer_given, command.epsilon_start_given,
        command.learning_rate_given, command.momentum_given, command.batch_given, command.method.epsilon_given,
        command.method.epsilon_absolute_given, command.method.objective_given}) {
    if (option->count() > 0) return Method::robot;
  }
  return Method::automatic;
}

FitOptions to_options(const FitCommand& command) {
  FitOptions options = to_fit_options(command.method);
  if (command.method.method_given->count() == 0 && options.method == Method::automatic) {
    options.method = implied_method(command);
  }
  apply(command.search, command.tables.features.empty(), options);
  options.start_confidence = command.start_confidence;
  options.optimizer = to_optimizer(command.optimizer);
  options.learning_rate = command.learning_rate;
  options.momentum = command.momentum;
  options.batch = command.batch;
  options.checkpoint = command.checkpoint;
  require(command.start_confidence >= 0 && command.start_confidence < 1, "--start-confidence", command.start_confidence,
          "at least 0 and below 1");
  require(command.learning_rate > 0 && std::isfinite(command.learning_rate), "--learning-rate", command.learning_rate,
          "> 0");
  require(command.momentum >= 0 && command.momentum < 1, "--momentum", command.momentum, "at least 0 and below 1");
  require(command.batch >= 0, "--batch", static_cast<double>(command.batch), "at least 0");
  require_read(command, options.method);
  if (command.epsilon_start_given->count() > 0) {
    require(command.epsilon_start > options.epsilon.value && std::isfinite(command.epsilon_start), "--epsilon-start",
            command.epsilon_start, fmt::format("above ε = {}", options.epsilon.value));
    options.epsilon_start = command.epsilon_start;
  }
  return options;
}

std::vector<Method> all_methods() {
  std::vector<Method> methods;
  for (const MethodInfo& info : known_methods()) methods.push_back(info.method);
  return methods;
}

std::vector<Output> outputs_of(const FitCommand& command) {
  return {{"--out", command.out},     {"--pairs", command.pairs},   {"--trace", command.trace},
          {"--links", command.links}, {"--report", command.report}, {"--checkpoint", command.checkpoint}};
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

std::string links_csv(const Fit& fit) {
  std::string out = "response_row,probability\n";
  for (Index row = 0; row < fit.link_probabilities.size(); ++row) {
    if (std::isnan(fit.link_probabilities[row])) continue;
    out += fmt::format("{},", row);
    append_number(out, fit.link_probabilities[row]);
    out += '\n';
  }
  return out;
}

void write_outputs(const FitCommand& command, const Fit& fit, const FitContext& context,
                   const std::string& pairs_content, const std::string& report) {
  if (!command.out.empty()) write_whole_file(command.out, to_json(fit, context));
  if (!command.pairs.empty()) write_whole_file(command.pairs, pairs_content);
  if (!command.trace.empty()) write_whole_file(command.trace, trace_csv(fit));
  if (!command.links.empty()) write_whole_file(command.links, links_csv(fit));
  if (!command.links.empty() && fit.link_probabilities.size() == 0 && !command.tables.quiet) {
    fmt::print(stderr, "unshuffle: note: {} has no rows: {} gives no probabilities of links in the order given\n",
               command.links, name_of(fit.chosen));
  }
  if (!command.report.empty()) write_whole_file(command.report, report);
}

void print(const FitCommand& command, const Fit& fit, const FitContext& context) {
  if (command.json) {
    fmt::print("{}", to_json(fit, context));
    return;
  }
  if (command.tables.quiet) return;
  if (command.verbose) fmt::print("{}\n", course_of(fit));
  fmt::print("{}", fit.summary());
  for (const auto& path : {command.out, command.pairs, command.trace, command.links, command.report}) {
    if (!path.empty()) fmt::print("Wrote {}\n", path);
  }
}

FitContext context_for(const FitCommand& command, const ColumnChoice& columns, const Model& bound,
                       const FitOptions& options) {
  return context_of(columns, command.tables.features.empty(), bound, !command.method.no_intercept, options);
}

int exit_code_of(const Fit& fit) {
  const bool believable = fit.identifiable.verdict != Verdict::not_identifiable;
  return fit.status == Fit::Status::converged && believable ? 0 : 1;
}

/// What of the command takes all rows into one memory; empty: nothing, tables may come in pieces.
std::string needs_memory(const FitCommand& command, const FitOptions& options) {
  const auto model = make_model(command.method.model, !command.method.no_intercept);
  const EventFlags& events = command.tables.events;
  const bool uses_events =
      !events.transforms.empty() || events.compensate || !events.gates.empty() || events.equal_mass_gates > 0;
  const std::pair<bool, const char*> given[] = {
      {command.tables.response.size() > 1, "several columns of --response"},
      {!command.tables.groups.empty(), "--group"},
      {!command.tables.weights.empty(), "--weights"},
      {model->additive() == nullptr, "this --model"},
      {!large::fits_in_pieces(options.method), "this --method"},
      {options.backend == Backend::dense, "--backend dense"},
      {options.optimizer == Optimizer::momentum || options.optimizer == Optimizer::adam, "this --optimizer"},
      {options.rho1 >= 0 || options.rho2 >= 0, "--rho1 and --rho2"},
      {options.bootstrap > 0, "--bootstrap"},
      {!command.pairs.empty(), "--pairs"},
      {!command.links.empty(), "--links"},
      {!command.checkpoint.empty(), "--checkpoint"},
      {!command.report.empty(), "--report"},
      {!command.search.known.empty(), "--known"},
      {!command.search.prior.empty(), "--prior"},
      {!command.tables.soft_groups.empty(), "--soft-group"},
      {!command.search.truth.empty(), "--truth"},
      {command.search.paper_settings, "--paper-settings"},
      {uses_events, "scales and gates of events"}};
  for (const auto& [present, name] : given) {
    if (present) return name;
  }
  return "";
}

int run_in_pieces(const FitCommand& command, FitOptions options, Team& team) {
  use_threads(options.threads);
  const auto model = make_model(command.method.model, !command.method.no_intercept);
  if (team.leads()) require_outputs(outputs_of(command));
  large::ReadOptions reading;
  if (command.stream)
    reading.scratch = command.scratch.empty() ? std::filesystem::temp_directory_path().string() : command.scratch;
  const large::LargeTables tables = large::read_tables_in_pieces(
      large::files_named(command.tables.responses),
      command.tables.features.empty() ? std::vector<std::string>{} : large::files_named(command.tables.features),
      column_choice(command.tables), team, reading);
  const auto bound = model->bound_to(completed(tables.sample));
  require_estimable(tables.sample, *bound);
  apply_to_model(command.search, tables.sample, *bound, options);
  if (team.leads()) options.progress = progress_bar(command.tables.quiet);
  const Fit result = large::fit_large(tables, *model, options, team);
  if (!team.leads()) return 0;
  if (!command.tables.quiet) {
    for (const std::string& note : tables.notes) fmt::print(stderr, "unshuffle: note: {}\n", note);
  }
  const FitContext context = context_for(command, tables.columns, *bound, options);
  write_outputs(command, result, context, "", "");
  print(command, result, context);
  return exit_code_of(result);
}

/// Every process of the team holds the tables; the first of them writes and says what came out.
int run_in_memory(const FitCommand& command, FitOptions options, Team& team) {
  const auto model = make_model(command.method.model, !command.method.no_intercept);
  if (!command.search.known.empty() && !command.search.truth.empty()) {
    throw InvalidInput("--known and --truth both say which rows belong together; give one of them");
  }
  if (team.leads()) require_outputs(outputs_of(command));
  const auto truth = command.report_truth.empty() ? std::vector<KnownPair>{} : true_pairs(command.report_truth);
  TableOptions tables = command.tables;
  tables.quiet = tables.quiet || !team.leads();
  TablesAsProblem loaded = load(tables);
  options.team = &team;
  Problem& problem = loaded.problem;
  problem.known = command.search.truth.empty() ? known_pairs(command.search) : true_pairs(command.search.truth);
  problem.prior = pair_weights(command.search);
  const auto bound = model->bound_to(problem);
  require_estimable(problem, *bound);
  require_memory(problem, *bound, options);
  apply_to_model(command.search, problem, *bound, options);
  options.progress = progress_bar(tables.quiet);
  const Fit result = fit(problem, *model, options);
  if (!team.leads()) return 0;

  const FitContext context = context_for(command, loaded.columns, *bound, options);
  const bool matched = !command.pairs.empty() || !command.report.empty();
  const Matching matching = matched ? match(result, problem, *bound, options) : Matching{};
  write_outputs(
      command, result, context, pairs_csv(matching),
      command.report.empty() ? "" : html_report({result, context, problem, *bound, options, matching, truth}));
  print(command, result, context);
  return exit_code_of(result);
}

int run(const FitCommand& command) {
  const FitOptions options = to_options(command);
  require_meaning(*command.scratch_given, command.stream, "--stream");
  const std::unique_ptr<Team> team = make_team();
  const std::string obstacle = needs_memory(command, options);
  const bool in_memory = !command.stream && (team->size() == 1 || !obstacle.empty());
  if (in_memory && team->size() > 1 && team->leads() && !command.tables.quiet) {
    fmt::print(stderr, "unshuffle: note: {}: every process holds both tables, starts and plan are shared\n", obstacle);
  }
  return together(*team, [&] {
    if (!in_memory && !obstacle.empty())
      throw InvalidInput(fmt::format("{}: not with tables in pieces (--stream)", obstacle));
    return in_memory ? run_in_memory(command, options, *team) : run_in_pieces(command, options, *team);
  });
}

}  // namespace

Command add_fit(CLI::App& root) {
  CLI::App* app = root.add_subcommand("fit", "Fit a regression to two tables whose row links are lost.");
  const auto command = std::make_shared<FitCommand>();
  add_table_options(*app, command->tables);
  add_method_option(*app, command->method, all_methods());
  add_model_options(*app, command->method);
  add_search_options(*app, command->search);
  add_descent_options(*app, *command);
  add_output_options(*app, *command);
  add_size_options(*app, *command);
  add_verbose_option(*app, command->verbose);
  app->footer(
      "Without --method: auto, or robot when an option that only robot reads is given (--epsilon, --optimizer, ...).\n"
      "Exit code 1: did not converge, or the data cannot tell the answer from others (see Identifiability).\n\n"
      "Example: wages in one file, people in another, some of them in one only\n"
      "  unshuffle fit wages.csv people.csv --response wage --robust --unmatched 0.1 --group city=town \\\n"
      "      --out fit.json --pairs pairs.csv --report report.html\n\n"
      "The same by another method, to compare; unshuffle compare tries several at once\n"
      "  unshuffle fit wages.csv people.csv --response wage --method am --starts 20\n\n"
      "More rows than memory, or than one machine can hold (docs/large.md); quote patterns of files\n"
      "  unshuffle fit wages.csv people.csv --response wage --stream\n"
      "  mpirun -n 4 unshuffle fit 'wages-*.csv' 'people-*.csv' --response wage\n\n"
      "Cytometry: one channel from the others, cells sorted by gates\n"
      "  unshuffle fit cells.fcs --response FITC-A --transform asinh:150 --gates gates.xml --group gates");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
