// unshuffle match: one-to-one pairs under a saved fit.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.hpp"
#include "core/threads.hpp"
#include "options.hpp"
#include "pairs.hpp"
#include "say.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/fitted/fitted.hpp"

namespace unshuffle::app {
namespace {

struct MatchCommand {
  std::string fit;
  std::string responses;
  std::string features;
  std::string out = "pairs.csv";
  std::string join;
  bool all = false;
  int samples = 0;
  std::uint64_t seed = 0;
  bool spreadsheet_safe = false;
  EventFlags events;
  int threads = 0;
  bool quiet = false;
};

void tell_of_outcome(const MatchCommand& command, const std::vector<Output>& outputs) {
  if (command.quiet) return;
  tell_of_verdict(command.fit);
  tell_of_replaced(outputs);
}

int write_samples(const MatchCommand& command, const Fitted& fitted, const Problem& problem, const Preparation& rows,
                  const std::vector<Output>& outputs) {
  const std::vector<LinkSet> sets = fitted.sample_links(problem, command.samples, command.seed);
  const std::string content = samples_csv(sets, rows);
  tell_of_outcome(command, outputs);
  write_whole_file(command.out, content);
  if (command.quiet) return 0;
  if (fitted.result().covariance.size() == 0)
    note("the fit has no standard errors, so all sets of links are drawn at its estimates");
  fmt::print("{} sets of {} links\nWrote {}\n", sets.size(), sets.front().size(), command.out);
  return 0;
}

int run(const MatchCommand& command) {
  require_threads(command.threads);
  const std::vector<Output> outputs{{"--out", command.out}};
  require_outputs(outputs, {command.fit, command.responses, command.features, command.events.gates});
  const Fitted fitted = Fitted::load(command.fit);
  const FitContext& context = fitted.context();
  const bool one_table = command.features.empty();
  if (one_table && !context.one_table) {
    throw InvalidInput(fmt::format("{} was fitted to two tables; give FEATURES as well", command.fit));
  }
  const KeepText keep = command.join.empty() ? KeepText::where_needed : KeepText::always;
  std::vector<std::string> paths{command.responses};
  if (!one_table) paths.push_back(command.features);
  const bool any_fcs = std::any_of(paths.begin(), paths.end(), cytometry::has_fcs_extension);
  EventFlags events = remembered(context.columns.events, command.events, command.fit);
  const Index mass_gates = events.equal_mass_gates;
  if (!any_fcs) events = EventFlags{};
  events.equal_mass_gates = mass_gates;
  std::vector<Table> tables = read_tables(paths, any_fcs ? events : command.events, keep, command.quiet);
  std::vector<Table> coded = tables;
  const Preparation rows = prepare_again(coded.front(), one_table ? nullptr : &coded.back(), context.columns);
  if (!command.quiet) {
    for (const std::string& one : rows.notes) note(one);
  }
  add_mass_gates(coded.front(), events, context.columns.response);
  const Problem problem = completed(tables_to_problem(coded.front(), coded.back(), context.columns).problem);
  coded.clear();
  require_feasible(problem, fitted.model(), fitted.context().chosen);
  use_threads(command.threads);
  if (command.samples > 0) return write_samples(command, fitted, problem, rows, outputs);
  const Matching matching = in_file_rows(fitted.match(problem, command.all ? LinkRows::all : LinkRows::kept), rows);

  std::string content;
  if (command.join.empty()) {
    content = pairs_csv(matching);
  } else {
    const Join join = command.join == "inner" ? Join::inner : command.join == "left" ? Join::left : Join::right;
    content = joined_csv(matching, tables.front(), tables.back(), join, command.spreadsheet_safe);
  }
  tell_of_outcome(command, outputs);
  write_whole_file(command.out, content);
  if (!command.quiet) {
    fmt::print("{} pairs, {} responses and {} features unmatched\nWrote {}\n", matching.pairs.size(),
               matching.unmatched_responses.size(), matching.unmatched_features.size(), command.out);
  }
  return 0;
}

}  // namespace

Command add_match(CLI::App& root) {
  CLI::App* app = root.add_subcommand("match", "Link the rows of two tables one-to-one under a saved fit.");
  const auto command = std::make_shared<MatchCommand>();
  app->add_option("FIT", command->fit, "fit.json written by unshuffle fit --out.")->required();
  app->add_option("RESPONSES", command->responses, "CSV, NPY or FCS with the response column(s).")->required();
  app->add_option("FEATURES", command->features,
                  "CSV, NPY or FCS with the features; omit it when the fit was to one table.");
  app->add_option("--out", command->out,
                  "Output file: response_row,feature_row,probability with rows counted from 0. Unmatched rows "
                  "follow, with the other cells empty.")
      ->capture_default_str();
  app->add_option("--join", command->join,
                  "Write the joined table instead: inner (pairs), left (every response) or right (every feature).")
      ->check(CLI::IsMember({"inner", "left", "right"}));
  app->add_flag("--all", command->all,
                "Robust fits: also link the rows that the fit leaves unmatched, as far as the smaller table allows.");
  CLI::Option* samples =
      app->add_option("--samples", command->samples,
                      "Write this many complete sets of links drawn from their posterior instead: "
                      "sample,response_row,feature_row. Analyses of each are pooled by unshuffle.pool() in Python.")
          ->check(CLI::PositiveNumber)
          ->excludes("--join")
          ->excludes("--all");
  app->add_option("--seed", command->seed, "Of the samples.")->capture_default_str()->needs(samples);
  add_spreadsheet_option(*app, command->spreadsheet_safe);
  add_scale_options(*app, command->events);
  add_gate_options(*app, command->events);
  app->add_option("--threads", command->threads, "0: all.")->capture_default_str();
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  app->footer("Example:\n  unshuffle match fit.json wages.csv people.csv --join left --out linked.csv");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
