// unshuffle compare: one table of methods. A method that cannot run gets a row with the reason.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.hpp"
#include "core/read_json.hpp"
#include "core/threads.hpp"
#include "course.hpp"
#include "estimator_options.hpp"
#include "link_options.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "say.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/objective/feasible.hpp"

namespace unshuffle::app {
namespace {

struct CompareCommand {
  explicit CompareCommand(CLI::App& app) : options(app, all_estimators()) {}

  TableOptions tables;
  EstimatorFlags options;
  ModelOptions model;
  LinkOptions links;
  Execution execution{.dialect = Dialect::command_line};
  std::string test;
  std::vector<std::string> methods;
  std::string csv;
  bool json = false;
  bool verbose = false;
  bool spreadsheet_safe = false;
};

/// Linked rows kept for testing.
struct Test {
  Matrix x;
  Matrix z;
  Matrix y;
};

/// The result of a method, or why there is none.
struct Row {
  std::string method;
  std::optional<Result> fit;
  std::string reason;
  double seconds = 0;
  std::optional<double> coefficient_error;
  std::optional<double> test_error;
};

/// Everything the methods are compared on.
struct Bench {
  const CompareCommand& command;
  Problem problem;
  std::unique_ptr<Model> model;
  std::unique_ptr<Model> bound;
  std::optional<Test> test;
  std::optional<Vector> truth;
  std::vector<KnownPair> true_links;
};

/// Estimators compared by default.
std::vector<Estimator> default_estimators(const CompareCommand& command, const Problem& problem) {
  constexpr double many_pairs = 5e5;
  const bool small = double(problem.responses()) * double(problem.features()) <= many_pairs;
  const bool known = !command.links.truth.empty() || !command.links.known.empty();
  std::vector<Estimator> estimators;
  for (const EstimatorEntry& entry : all_estimators()) {
    const Compared when = entry.traits.compared;
    if (when == Compared::always || (when == Compared::with_known_pairs && known) ||
        (when == Compared::on_small_tables && small)) {
      estimators.push_back(estimator_named(entry.traits.name).value());
    }
  }
  return estimators;
}

std::vector<Estimator> named_estimators(const CompareCommand& command) {
  std::vector<Estimator> estimators;
  for (const std::string& name : command.methods) {
    const auto estimator = estimator_named(name);
    if (!estimator) throw InvalidInput(fmt::format("--methods {}: there is no such method", name));
    estimators.push_back(*estimator);
  }
  return estimators;
}

/// An option that none of them reads is reported, not silently ignored.
void tell_of_unread_options(const EstimatorFlags& flags, const std::vector<Estimator>& estimators) {
  for (const std::string& name : flags.given()) {
    const bool read = std::any_of(estimators.begin(), estimators.end(), [&](const Estimator& one) {
      const auto values = option_values(one);
      return std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
    });
    if (!read) note(fmt::format("{}: ignored, as none of the compared methods reads it", flag_of(name)));
  }
}

Test read_test(const CompareCommand& command, const ColumnChoice& columns) {
  Table table =
      read_tables({command.test}, command.tables.events, KeepText::where_needed, command.tables.quiet).front();
  code_rows(table, columns, RowsHold::features_and_responses);
  return {table.matrix(*columns.x), table.matrix(*columns.z), table.matrix(columns.response)};
}

/// Σ|ŷ - y|² / Σ|y - ȳ|².
double relative_error(const Bench& bench, const Vector& w) {
  const Test& test = *bench.test;
  const Matrix predicted = predict_linked(*bench.bound, test.x, test.z, w);
  return (predicted - test.y).squaredNorm() / (test.y.rowwise() - test.y.colwise().mean()).squaredNorm();
}

Row run_estimator(const Bench& bench, Estimator estimator) {
  Row row{
      .method = std::string(name_of(estimator)), .fit = {}, .reason = {}, .coefficient_error = {}, .test_error = {}};
  Execution execution = bench.command.execution;
  execution.progress = progress_bar(bench.command.tables.quiet);
  Problem problem = bench.problem;
  if (traits_of(estimator).compared == Compared::with_known_pairs && !bench.true_links.empty())
    problem.known = bench.true_links;
  const auto begin = std::chrono::steady_clock::now();
  try {
    bench.command.options.apply_what_is_read(estimator);
    bench.command.options.apply_start(estimator, *bench.bound);
    require_feasible(problem, *bench.bound, estimator);
    row.fit = fit(std::move(problem), *bench.model, estimator, execution).result();
  } catch (const Error& error) {
    row.reason = in_terms_of(Dialect::command_line, error.what());
  } catch (const std::bad_alloc&) {
    row.reason = "out of memory";
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!row.fit) return row;
  row.reason = fmt::format("{}: {}", name_of(row.fit->status), row.fit->message);
  if (bench.truth) row.coefficient_error = (row.fit->parameters - *bench.truth).norm() / bench.truth->norm();
  if (bench.test) row.test_error = relative_error(bench, row.fit->parameters);
  return row;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  if (value && std::isfinite(*value)) return *value;
  return nullptr;
}

nlohmann::ordered_json to_json(const Row& row, const std::vector<std::string>& names) {
  nlohmann::ordered_json out{{"method", row.method},
                             {"status", row.fit ? name_of(row.fit->status) : "failed"},
                             {"message", row.fit ? row.fit->message : row.reason},
                             {"coefficient_error", number_or_null(row.coefficient_error)},
                             {"test_error", number_or_null(row.test_error)},
                             {"seconds", row.seconds}};
  if (!row.fit) return out;
  out["objective"] = number_or_null(row.fit->objective.value);
  out["objective_name"] = row.fit->objective.name;
  out["transport_cost"] = number_or_null(row.fit->plan.transport_cost);
  out["noise_sd"] = number_or_null(row.fit->noise_sd);
  out["verdict"] = name_of(row.fit->identifiable.verdict);
  const Matrix ends = row.fit->intervals();
  auto& intervals = out["intervals"] = nlohmann::ordered_json::object();
  for (std::size_t at = 0; at < names.size(); ++at)
    intervals[names[at]] = {number_or_null(ends(Index(at), 0)), number_or_null(ends(Index(at), 1))};
  auto& parameters = out["parameters"] = nlohmann::ordered_json::object();
  for (std::size_t at = 0; at < names.size(); ++at) parameters[names[at]] = row.fit->parameters[Index(at)];
  return out;
}

std::string to_csv(const std::vector<Row>& rows, bool spreadsheet_safe) {
  std::string out =
      "method,status,coefficient_error,test_error,objective,objective_name,transport_cost,seconds,message\n";
  const auto number = [](std::optional<double> value) {
    std::string text;
    if (value && std::isfinite(*value)) append_number(text, *value);
    return text;
  };
  for (const Row& row : rows) {
    const std::string objective = row.fit ? number(row.fit->objective.value) : "";
    const std::string transport_cost = row.fit ? number(row.fit->plan.transport_cost) : "";
    out += fmt::format("{},{},{},{},{},{},{},{},{}\n", row.method, row.fit ? name_of(row.fit->status) : "failed",
                       number(row.coefficient_error), number(row.test_error), objective,
                       row.fit ? row.fit->objective.name : "", transport_cost, number(row.seconds),
                       csv_cell(row.fit ? row.fit->message : row.reason, spreadsheet_safe));
  }
  return out;
}

void print_header() {
  fmt::print("{:<15}{:>12}{:>12}{:>14}{:>14}{:>9}  {}\n", "method", "coef error", "test error", "objective",
             "transport", "seconds", "outcome");
}

void print_row(const Row& row) {
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.5g}", *value) : std::string("-");
  };
  say(fmt::format("{:<15}{:>12}{:>12}{:>14}{:>14}{:>9.2f}  {}\n", row.method, cell(row.coefficient_error),
                  cell(row.test_error), row.fit ? fmt::format("{:.6g}", row.fit->objective.value) : "-",
                  row.fit ? fmt::format("{:.6g}", row.fit->plan.transport_cost) : "-", row.seconds,
                  row.fit ? row.reason : "cannot run: " + row.reason));
  std::fflush(stdout);
}

/// Coefficients with their intervals and the verdict, method by method.
void print_answers(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (!row.fit) continue;
    const Result& fit = *row.fit;
    const Matrix ends = fit.intervals();
    say(fmt::format("\n{}: {}\n", row.method, name_of(fit.identifiable.verdict)));
    for (std::size_t at = 0; at < fit.names.size(); ++at) {
      const auto k = static_cast<Index>(at);
      const bool known = std::isfinite(ends(k, 0)) && std::isfinite(ends(k, 1));
      say(fmt::format("  {:<24}{:>14.6g}{}\n", fit.names[at], fit.parameters[k],
                      known ? fmt::format("   {:.6g} to {:.6g}", ends(k, 0), ends(k, 1)) : ""));
    }
  }
}

Bench prepare(const CompareCommand& command) {
  Bench bench{.command = command,
              .problem = {},
              .model = command.model.make(),
              .bound = {},
              .test = {},
              .truth = {},
              .true_links = {}};
  const RowOrder order = order_of(command.links, command.tables.features.empty());
  const LoadedTables loaded = load(command.tables, order);
  bench.problem = loaded.problem;
  bench.problem.order = order;
  bench.problem.known = in_kept_rows(known_pairs(command.links), loaded.rows);
  bench.problem.prior = in_kept_rows(pair_weights(command.links), loaded.rows);
  bench.bound = bench.model->bound_to(bench.problem);
  require_estimable(bench.problem, *bench.bound);
  if (!command.test.empty()) bench.test = read_test(command, loaded.columns);
  if (!command.links.truth.empty()) {
    const std::string& path = command.links.truth;
    bench.truth = in_order(parameters_from_json(read_file(path), path), bench.bound->parameter_names(), path);
    bench.true_links = in_kept_rows(true_pairs(path), loaded.rows);
  }
  return bench;
}

std::vector<std::string> inputs_of(const CompareCommand& command) {
  std::vector<std::string> inputs = app::inputs_of(command.tables);
  for (const std::string& path : inputs_of(command.links)) inputs.push_back(path);
  inputs.push_back(command.test);
  inputs.push_back(command.options.start_file());
  return inputs;
}

int run(const CompareCommand& command) {
  require_threads(command.execution.threads);
  std::vector<Estimator> estimators = named_estimators(command);
  require_outputs({{"--csv", command.csv}}, inputs_of(command));
  const Bench bench = prepare(command);
  if (estimators.empty()) estimators = default_estimators(command, bench.problem);
  if (!command.tables.quiet) tell_of_unread_options(command.options, estimators);
  const bool text = !command.json && !command.tables.quiet;
  if (text) print_header();
  std::vector<Row> rows;
  for (const Estimator& estimator : estimators) {
    rows.push_back(run_estimator(bench, estimator));
    if (text) print_row(rows.back());
    if (text && command.verbose && rows.back().fit) fmt::print("{}", course_of(rows.back().fit->course));
  }
  if (text && !bench.truth) print_answers(rows);
  if (!command.tables.quiet) tell_of_replaced({{"--csv", command.csv}});
  if (!command.csv.empty()) write_whole_file(command.csv, to_csv(rows, command.spreadsheet_safe));
  if (command.json) {
    nlohmann::ordered_json out{{"methods", nlohmann::ordered_json::array()}, {"seed", command.execution.seed}};
    for (const Row& row : rows) out["methods"].push_back(to_json(row, bench.bound->parameter_names()));
    fmt::print("{}", json_text(out, 2));
  }
  const bool any = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fit.has_value(); });
  return any ? 0 : 1;
}

}  // namespace

Command add_compare(CLI::App& root) {
  CLI::App* app = root.add_subcommand("compare", "Fit the same tables by several methods and compare the results.");
  const auto command = std::make_shared<CompareCommand>(*app);
  add_table_options(*app, command->tables);
  app->add_option(
         "--methods", command->methods,
         "Names as in fit --method, separated by commas; by default all that apply (robot-unrolled must be named "
         "explicitly, as must sinkhorn-gw beyond about 700 rows).")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  app->add_option("--test", command->test,
                  "Table of linked rows: every feature and the response. Gives the relative error Σ(ŷ-y)²/Σ(y-ȳ)².");
  add_model_options(*app, command->model);
  add_link_options(*app, command->links);
  add_execution_options(*app, command->execution);
  app->add_option("--csv", command->csv, "Write the table as CSV.");
  add_spreadsheet_option(*app, command->spreadsheet_safe);
  app->add_flag("--json", command->json, "Print JSON instead of a table.");
  add_verbose_option(*app, command->verbose);
  app->footer(
      "With --truth (a truth.json of simulate) the relative error of the coefficients is shown and oracle is "
      "included.\n"
      "Objectives differ between methods; the transport cost is the same function for all of them.\n"
      "A method that cannot run on these tables gets a row with the reason. Exit code 1 if none could run.\n\n"
      "Example:\n"
      "  unshuffle simulate sensing --n 1000 --dim-z 5 --snr 100 --mean 1 --out sample\n"
      "  unshuffle compare sample/responses.csv sample/features.csv --response y --hint rows \\\n"
      "      --test sample/test.csv --truth sample/truth.json --methods ls,rs,am,robot,oracle");
  return {app, [command] {
            settle(command->tables, command->model);
            return run(*command);
          }};
}

}  // namespace unshuffle::app
