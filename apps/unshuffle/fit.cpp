// unshuffle fit: two tables in, a regression out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "commands.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "course.hpp"
#include "estimator_options.hpp"
#include "link_options.hpp"
#include "options.hpp"
#include "pairs.hpp"
#include "progress.hpp"
#include "say.hpp"
#include "short_help.hpp"
#include "together.hpp"
#include "unshuffle/core/agreement.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/large/fit.hpp"
#include "unshuffle/objective/feasible.hpp"

namespace unshuffle::app {
namespace {

/// Output files, each written if named.
struct FitOutputs {
  std::string out;
  std::string pairs;
  std::string trace;
  std::string links;
  std::string report;
  std::string report_truth;
  bool json = false;
  bool verbose = false;
};

struct FitCommand {
  explicit FitCommand(CLI::App& own) : app(own), method(own, all_estimators()), options(own, all_estimators()) {}

  CLI::App& app;
  TableOptions tables;
  MethodFlags method;
  EstimatorFlags options;
  ModelOptions model;
  LinkOptions links;
  Execution execution{.dialect = Dialect::command_line};
  FitOutputs outputs;
  bool stream = false;
  std::string scratch;
  CLI::Option* scratch_given = nullptr;

  [[nodiscard]] bool one_table() const { return tables.features.empty(); }
};

void add_output_options(CLI::App& app, FitOutputs& outputs) {
  app.add_option("--out", outputs.out, "Write the fit as JSON; predict, match, gradient and --start read it.");
  app.add_option("--pairs", outputs.pairs, "Write one-to-one pairs as CSV; rows are counted from 0.");
  app.add_option(
      "--trace", outputs.trace,
      fmt::format("Write every iteration of every start as CSV; for {}.", estimators_with(&EstimatorTraits::traced)));
  app.add_option("--links", outputs.links,
                 "Write response_row,probability as CSV: how likely each row is linked in the order given (mixture).");
  app.add_option("--report", outputs.report, "Write one HTML page with the verdict, pictures and numbers.");
  app.add_option("--report-truth", outputs.report_truth,
                 "Report: truth.json of unshuffle simulate; match probabilities are compared with it. The fit does "
                 "not use it.");
  app.add_flag("--json", outputs.json, "Print JSON instead of a table.");
}

void add_size_options(CLI::App& app, FitCommand& command) {
  app.add_option("--checkpoint", command.execution.checkpoint,
                 "Keep finished starts and bootstrap samples in this file; after an interruption the same command "
                 "resumes from it.");
  app.add_flag("--stream", command.stream,
               "Tables larger than memory: rows are kept in a file and reread for every step.");
  command.scratch_given =
      app.add_option("--scratch", command.scratch, "Folder for that file; default: the system's temporary folder.")
          ->check(CLI::ExistingDirectory);
}

void require_meaning(bool given, const char* flag, bool has_meaning, std::string_view with) {
  if (given && !has_meaning) throw InvalidInput(fmt::format("{} applies only with {}", flag, with));
}

/// Options that only some estimators use are rejected with the others, not ignored.
void require_use(const FitCommand& command, const Estimator& estimator) {
  const EstimatorTraits& traits = traits_of(estimator);
  const FitOutputs& outputs = command.outputs;
  require_meaning(!outputs.trace.empty(), "--trace", traits.traced,
                  "--method " + estimators_with(&EstimatorTraits::traced));
  require_meaning(!outputs.links.empty(), "--links", traits.tells_links,
                  "--method " + estimators_with(&EstimatorTraits::tells_links));
  require_meaning(!outputs.report_truth.empty(), "--report-truth", !outputs.report.empty(), "--report");
  require_meaning(!command.links.truth.empty(), "--truth", traits.compared == Compared::with_known_pairs,
                  "--method oracle");
  require_meaning(command.scratch_given->count() > 0, "--scratch", command.stream, "--stream");
}

std::vector<Output> outputs_of(const FitCommand& command) {
  const FitOutputs& outputs = command.outputs;
  return {{"--out", outputs.out},     {"--pairs", outputs.pairs},   {"--trace", outputs.trace},
          {"--links", outputs.links}, {"--report", outputs.report}, {"--checkpoint", command.execution.checkpoint}};
}

/// Outputs without the checkpoint, which is there to be continued.
std::vector<Output> results_of(const FitCommand& command) {
  std::vector<Output> outputs = outputs_of(command);
  outputs.pop_back();
  return outputs;
}

std::vector<std::string> inputs_of(const FitCommand& command) {
  std::vector<std::string> inputs = app::inputs_of(command.tables);
  for (const std::string& path : inputs_of(command.links)) inputs.push_back(path);
  inputs.push_back(command.outputs.report_truth);
  inputs.push_back(command.options.start_file());
  return inputs;
}

std::string file_name_of(const std::string& path) { return as_utf8(std::filesystem::path(path).filename().string()); }

std::string trace_csv(const Result& fit) {
  std::string out = "start,iteration,epsilon,objective,gradient_norm,marginal_error,inner_iterations\n";
  for (const TracePoint& point : fit.course.trace) {
    out += fmt::format("{},{}", point.start, point.iteration);
    for (const double value : {point.epsilon, point.objective, point.gradient_norm, point.marginal_error}) {
      out += ',';
      append_number(out, value);
    }
    out += fmt::format(",{}\n", point.inner_iterations);
  }
  return out;
}

std::string links_csv(const Result& fit, const KeptRows& kept) {
  std::string out = "response_row,probability\n";
  for (Index row = 0; row < fit.link_probabilities.size(); ++row) {
    if (std::isnan(fit.link_probabilities[row])) continue;
    out += fmt::format("{},", kept.all ? row : kept.rows[static_cast<std::size_t>(row)]);
    append_number(out, fit.link_probabilities[row]);
    out += '\n';
  }
  return out;
}

/// The requested outputs other than the summary. Tables in pieces have neither pairs nor a report.
void write_outputs(const FitCommand& command, const Fitted& fitted, const Preparation& rows,
                   const std::vector<KnownPair>& truth) {
  const FitOutputs& outputs = command.outputs;
  const Result& result = fitted.result();
  if (!outputs.out.empty()) fitted.save(outputs.out);
  if (!outputs.pairs.empty()) write_whole_file(outputs.pairs, pairs_csv(in_file_rows(fitted.match(), rows)));
  if (!outputs.trace.empty()) write_whole_file(outputs.trace, trace_csv(result));
  if (!outputs.links.empty()) write_whole_file(outputs.links, links_csv(result, rows.responses));
  if (!outputs.links.empty() && result.link_probabilities.size() == 0 && !command.tables.quiet) {
    note(fmt::format("{} has no rows: {} gives no probabilities of links in the order given", outputs.links,
                     name_of(fitted.context().chosen)));
  }
  if (!outputs.report.empty()) write_whole_file(outputs.report, fitted.report(truth));
}

void print(const FitCommand& command, const Fitted& fitted) {
  const FitOutputs& outputs = command.outputs;
  if (outputs.json) {
    fmt::print("{}", fitted.to_json());
    return;
  }
  if (command.tables.quiet) return;
  if (outputs.verbose) say(course_of(fitted.result().course) + "\n");
  say_summary(fitted.summary(), fitted.result().identifiable.verdict);
  for (const auto& path : {outputs.out, outputs.pairs, outputs.trace, outputs.links, outputs.report}) {
    if (!path.empty()) say(fmt::format("Wrote {}\n", path));
  }
}

int exit_code_of(const Result& result) {
  const bool believable = result.identifiable.verdict != Verdict::not_identifiable;
  return result.status == Status::converged && believable ? 0 : 1;
}

/// The part of the command that needs all rows in memory; empty: none, tables may be read in pieces.
std::string needs_memory(const FitCommand& command, const Estimator& estimator) {
  const EventFlags& events = command.tables.events;
  const bool uses_events =
      !events.transforms.empty() || events.compensate || !events.gates.empty() || events.equal_mass_gates > 0;
  const auto gives = [&](const char* name) { return command.options.gives(name); };
  const std::pair<bool, const char*> given[] = {
      {!command.tables.formula.empty(), "a formula"},
      {command.tables.response.size() > 1, "several columns of --response"},
      {!command.tables.groups.empty(), "--group"},
      {!command.tables.weights.empty(), "--weights"},
      {family_kind_of(estimator) != FamilyKind::gaussian, "this --family"},
      {!column_choice(command.tables).rows.names().empty(),
       "columns that describe rows (--offset, --safe, --mismatch, ...)"},
      {command.tables.missing == "indicator", "--missing indicator"},
      {command.model.make()->additive() == nullptr, "this --model"},
      {!traits_of(estimator).in_pieces, "this --method"},
      {precision_of(estimator).backend == Backend::dense, "--backend dense"},
      {gives("batch") || gives("momentum") || gives("learning_rate"), "this --optimizer"},
      {gives("rho1") || gives("rho2"), "--rho1 and --rho2"},
      {bootstrap_of(estimator) > 0, "--bootstrap"},
      {!command.outputs.pairs.empty(), "--pairs"},
      {!command.outputs.links.empty(), "--links"},
      {!command.execution.checkpoint.empty(), "--checkpoint"},
      {!command.outputs.report.empty(), "--report"},
      {!command.links.known.empty(), "--known"},
      {!command.links.prior.empty(), "--prior"},
      {!command.tables.soft_groups.empty(), "--soft-group"},
      {!command.links.truth.empty(), "--truth"},
      {gives("paper_settings"), "--paper-settings"},
      {uses_events, "scales and gates of events"}};
  for (const auto& [present, name] : given) {
    if (present) return name;
  }
  return "";
}

int finish(const FitCommand& command, Fitted& fitted, const ColumnChoice& columns, const Preparation& rows = {},
           const std::vector<KnownPair>& truth = {}) {
  ColumnChoice remembered = columns;
  for (const std::string& path : {command.tables.responses, command.tables.features})
    if (!path.empty()) remembered.files.push_back(path == "-" ? "standard input" : file_name_of(path));
  fitted.remember_columns(std::move(remembered), command.one_table());
  if (!command.tables.quiet) tell_of_replaced(results_of(command));
  write_outputs(command, fitted, rows, in_kept_rows(truth, rows));
  print(command, fitted);
  return exit_code_of(fitted.result());
}

/// The given options, which all processes must have in common. Input files may have other names on other machines;
/// their contents are compared after reading.
std::vector<Common> options_given(const FitCommand& command) {
  const std::set<std::string> own{"--threads", "--scratch", "--quiet", "--verbose"};
  const std::set<std::string> read{"RESPONSES", "FEATURES", "THIRD",          "--known",
                                   "--prior",   "--truth",  "--report-truth", "--gates"};
  std::vector<Common> given{{"the formula", command.tables.formula}};
  for (const CLI::Option* option : command.app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || own.count(name) > 0) continue;
    given.push_back({name, read.count(name) > 0 ? "a file" : fmt::format("{}", fmt::join(option->results(), ","))});
  }
  return given;
}

int run_in_pieces(const FitCommand& command, Estimator estimator, Team& team) {
  use_threads(command.execution.threads);
  Execution execution = command.execution;
  if (team.leads()) execution.progress = progress_bar(command.tables.quiet);
  const auto model = command.model.make();
  if (team.leads()) require_outputs(outputs_of(command), inputs_of(command));
  large::ReadOptions reading;
  if (command.stream)
    reading.scratch = command.scratch.empty() ? std::filesystem::temp_directory_path().string() : command.scratch;
  large::LargeTables tables = large::read_tables_in_pieces(
      large::files_named(command.tables.responses),
      command.one_table() ? std::vector<std::string>{} : large::files_named(command.tables.features),
      column_choice(command.tables), team, reading);
  tables.sample.order = order_of(command.links, command.one_table());
  const auto bound = command.model.make()->bound_to(completed(tables.sample));
  require_estimable(tables.sample, *bound);
  command.options.apply_start(estimator, *bound);
  std::optional<Fitted> fitted = large::fit_large(tables, *model, estimator, execution, team);
  execution.progress = {};
  if (!fitted) return 0;
  if (!command.tables.quiet) {
    for (const std::string& one : tables.notes) note(one);
  }
  return finish(command, *fitted, tables.columns);
}

/// Every process of the team holds the tables; the first one writes and prints the results.
int run_in_memory(const FitCommand& command, Estimator estimator, Team& team) {
  const auto model = command.model.make();
  if (!command.links.known.empty() && !command.links.truth.empty()) {
    throw InvalidInput("--known and --truth both give the links; use one of them");
  }
  if (team.leads()) require_outputs(outputs_of(command), inputs_of(command));
  const std::string& truth_path = command.outputs.report_truth;
  const auto truth = truth_path.empty() ? std::vector<KnownPair>{} : true_pairs(truth_path);
  TableOptions tables = command.tables;
  tables.quiet = tables.quiet || !team.leads();
  Execution execution = command.execution;
  execution.progress = progress_bar(tables.quiet);  // reading is part of the work
  const RowOrder order = order_of(command.links, command.one_table());
  LoadedTables loaded = load(tables, order);
  Problem& problem = loaded.problem;
  problem.order = order;
  for (const KnownPair& pair : in_kept_rows(
           command.links.truth.empty() ? known_pairs(command.links) : true_pairs(command.links.truth), loaded.rows)) {
    const bool safe =
        !tables.rows.safe.empty() && std::any_of(problem.known.begin(), problem.known.end(), [&](const KnownPair& one) {
          return one.response_row == pair.response_row && one.feature_row == pair.feature_row;
        });
    if (!safe) problem.known.push_back(pair);
  }
  problem.prior = in_kept_rows(pair_weights(command.links), loaded.rows);
  execution.team = &team;
  {
    const auto bound = model->bound_to(problem);
    require_feasible(problem, *bound, estimator, &team);
    command.options.apply_start(estimator, *bound);
  }
  Fitted fitted = fit(std::move(problem), *model, estimator, execution);
  execution.progress = {};
  return team.leads() ? finish(command, fitted, loaded.columns, loaded.rows, truth) : 0;
}

int run(const FitCommand& command) {
  require_threads(command.execution.threads);
  const Estimator estimator = command.method.estimator(command.options);
  require_use(command, estimator);
  const std::unique_ptr<Team> team = make_team();
  const std::string obstacle = needs_memory(command, estimator);
  const bool in_memory = !command.stream && (team->size() == 1 || !obstacle.empty());
  return together(*team, [&] {
    require_agreement(*team, options_given(command));
    if (in_memory && team->size() > 1 && team->leads() && !command.tables.quiet) {
      note(fmt::format("{}: every process holds both tables; starts and plan are shared", obstacle));
    }
    if (!in_memory && !obstacle.empty())
      throw InvalidInput(fmt::format("{}: not with tables in pieces (--stream)", obstacle));
    return in_memory ? run_in_memory(command, estimator, *team) : run_in_pieces(command, estimator, *team);
  });
}

}  // namespace

Command add_fit(CLI::App& root) {
  CLI::App* app = root.add_subcommand("fit", "Fit a regression to two tables whose row links are lost.");
  const auto command = std::make_shared<FitCommand>(*app);
  add_table_options(*app, command->tables);
  add_model_options(*app, command->model);
  add_link_options(*app, command->links);
  add_execution_options(*app, command->execution);
  add_output_options(*app, command->outputs);
  add_size_options(*app, *command);
  add_verbose_option(*app, command->outputs.verbose);
  add_short_help(*app,
                 {"--help", "--help-all", "--formula", "--response", "--z", "--group", "--hint", "--method", "--robust",
                  "--missing", "--out", "--pairs", "--report"},
                 {{"Columns and rows", {"--x", "--weights", "--soft-group", "--transform", "--compensate", "--gates"}},
                  {"Links", {"--known", "--prior", "--truth"}},
                  {"Model", {"--model", "--no-intercept"}},
                  {"Output", {"--trace", "--links", "--report-truth", "--json", "--quiet", "--verbose"}},
                  {"Running", {"--seed", "--threads", "--checkpoint", "--stream", "--scratch"}}});
  app->footer(
      "Without --method: auto, or robot when an option that only robot reads is given (--epsilon, --optimizer, ...).\n"
      "Exit code 1: did not converge, or the data does not identify the answer (see Identifiability).\n\n"
      "A first try, on tables as people have them\n"
      "  unshuffle simulate wages --out demo\n"
      "  unshuffle fit 'wage ~ age + years + training + night' demo/wages.csv demo/people.csv --group city=town\n\n"
      "Example: wages in one file, people in another, some of them in only one\n"
      "  unshuffle fit wages.csv people.csv --response wage --robust --unmatched 0.1 --group city=town \\\n"
      "      --out fit.json --pairs pairs.csv --report report.html\n\n"
      "The same by another method, to compare; unshuffle compare tries several at once\n"
      "  unshuffle fit wages.csv people.csv --response wage --method am --starts 20\n\n"
      "More rows than memory, or than one machine can hold (docs/large.md); quote patterns of files\n"
      "  unshuffle fit wages.csv people.csv --response wage --stream\n"
      "  mpirun -n 4 unshuffle fit 'wages-*.csv' 'people-*.csv' --response wage\n\n"
      "Cytometry: one channel from the others, cells sorted by gates\n"
      "  unshuffle fit cells.fcs --response FITC-A --transform asinh:150 --gates gates.xml --group gates");
  return {app,
          [command] {
            settle(command->tables, command->model);
            return run(*command);
          },
          true};
}

}  // namespace unshuffle::app
