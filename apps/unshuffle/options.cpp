#include "options.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "core/read_json.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "say.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/large/tables.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle::app {
namespace {

/// COLUMN or LEFT=RIGHT.
GroupKey key_of(const std::string& text) {
  const auto equals = text.find('=');
  return {text.substr(0, equals), equals == std::string::npos ? text : text.substr(equals + 1)};
}

std::vector<GroupKey> to_keys(const std::vector<std::string>& groups) {
  std::vector<GroupKey> keys;
  for (const std::string& group : groups) {
    keys.push_back(key_of(group));
    if (keys.back().response_column.empty() || keys.back().feature_column.empty()) {
      throw InvalidInput(fmt::format("--group {}: COLUMN or LEFT=RIGHT was expected", group));
    }
  }
  return keys;
}

/// KEY:RATE or LEFT=RIGHT:RATE.
std::vector<SoftGroup> to_soft_groups(const std::vector<std::string>& groups) {
  std::vector<SoftGroup> made;
  for (const std::string& group : groups) {
    const auto colon = group.rfind(':');
    SoftGroup soft{key_of(group.substr(0, colon)), 0};
    if (colon != std::string::npos) {
      const char* end = group.data() + group.size();
      const auto [stop, failure] = std::from_chars(group.data() + colon + 1, end, soft.agreement);
      if (failure != std::errc{} || stop != end) soft.agreement = 0;
    }
    if (soft.key.response_column.empty() || soft.key.feature_column.empty() || !(soft.agreement > 0) ||
        !(soft.agreement < 1)) {
      throw InvalidInput(fmt::format(
          "--soft-group {}: COLUMN:RATE or LEFT=RIGHT:RATE was expected, with a rate of agreement above 0 and below 1",
          group));
    }
    made.push_back(std::move(soft));
  }
  return made;
}

/// A key that agrees in no pair distinguishes none; most likely it is spelled differently in the two tables.
void require_common_values(const std::vector<SoftKey>& keys, const std::vector<std::string>& options) {
  for (std::size_t at = 0; at < keys.size(); ++at) {
    const std::set<Index> left(keys[at].response_labels.begin(), keys[at].response_labels.end());
    const std::vector<Index>& right = keys[at].feature_labels;
    if (std::any_of(right.begin(), right.end(), [&](Index label) { return label >= 0 && left.count(label) > 0; })) {
      continue;
    }
    throw BadData(
        fmt::format("--soft-group {}: no value occurs in both tables, so it distinguishes no pairs", options[at]));
  }
}

Missing missing_named(const std::string& word) {
  if (word == "error") return Missing::error;
  return word == "indicator" ? Missing::indicator : Missing::drop;
}

DateOrder dates_named(const std::string& word) {
  if (word.empty()) return DateOrder::unknown;
  return word == "day-first" ? DateOrder::day_first : DateOrder::month_first;
}

/// The text files of folders, such as det/det.txt and seqinfo.ini of a video, beside the inputs that are files.
std::vector<std::string> files_of(const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code failure;
  for (const std::string& input : inputs) {
    if (!fs::is_directory(input, failure)) {
      files.push_back(input);
      continue;
    }
    for (fs::recursive_directory_iterator entry(input, failure), end; !failure && entry != end;
         entry.increment(failure)) {
      const fs::path extension = entry->path().extension();
      if (extension == ".txt" || extension == ".ini") files.push_back(entry->path().string());
    }
  }
  return files;
}

/// Columns that say something of rows and of which of them may match.
void add_key_options(CLI::App& command, TableOptions& options) {
  command
      .add_option("--weights", options.weights,
                  "Column of row weights, in either table or both; at least 0, any scale.")
      ->type_name("COL");
  command
      .add_option(
          "--group", options.groups,
          "Only rows with equal keys may match. LEFT=RIGHT when the tables name the key differently; separate several "
          "keys by commas.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COL");
  command
      .add_option(
          "--soft-group", options.soft_groups,
          "A key on which true partners agree at this rate, such as sex:0.98 or LEFT=RIGHT:0.9: rows that agree are "
          "likelier partners. Separate several keys by commas. Needs a matrix of all pairs; methods auto, entropic, "
          "robot and robot-robust.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COL:RATE");
}

}  // namespace

void add_table_options(CLI::App& command, TableOptions& options) {
  command
      .add_option(
          "RESPONSES", options.responses,
          "CSV, NPY or FCS with the response column(s) and the features in the same table; - is standard input.")
      ->required();
  command.add_option(
      "FEATURES", options.features,
      "CSV, NPY or FCS with the features whose row links are lost. Omit it when one table holds both and the "
      "response column may be shuffled.");
  command.add_option("THIRD", options.third, "FEATURES, where a formula stands in the place of RESPONSES.");
  command
      .add_option(
          "--formula", options.formula,
          "Response and features as in R: 'log(wage) ~ age + C(region) + age:sex + bs(x, 5) - 1'. May also stand "
          "before the files.")
      ->type_name("FORMULA");
  command.add_option("--response", options.response, "Response column, or several: x,y,z.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COL");
  options.x_given =
      command
          .add_option("--x", options.x,
                      "Feature columns of RESPONSES to use; default: all others, or none if there is only one table.")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("COL");
  options.z_given = command.add_option("--z", options.z, "Feature columns of FEATURES to use; default: all others.")
                        ->delimiter(',')
                        ->allow_extra_args(false)
                        ->type_name("COL");
  command
      .add_option(
          "--missing", options.missing,
          "Rows with missing cells (empty, NA, NaN, null, ...) in columns that are used: drop them, stop with an "
          "error that lists the columns, or fill in the mean and add an indicator column.")
      ->check(CLI::IsMember({"drop", "error", "indicator"}))
      ->capture_default_str();
  command
      .add_option("--dates", options.dates,
                  "How columns write dates of which no cell tells day and month apart, such as 3/4/2024.")
      ->check(CLI::IsMember({"day-first", "month-first"}));
  add_key_options(command, options);
  add_row_options(command, options);
  command.add_flag("--quiet", options.quiet, "Print errors only.");
  add_scale_options(command, options.events);
  add_gate_options(command, options.events);
}

void add_row_options(CLI::App& command, TableOptions& options) {
  RowColumns& rows = options.rows;
  const auto column = [&](const char* flag, std::string& name, const char* help) {
    command.add_option(flag, name, help)->type_name("COL");
  };
  column("--offset", rows.offset,
         "Column that is part of the linear predictor with coefficient 1, such as the logarithm of an exposure, in "
         "either table; families with a log or logit link.");
  column("--trials", rows.trials,
         "Column of RESPONSES with the numbers of trials, of which the response counts the successes; --family "
         "binomial.");
  column("--event", rows.event,
         "Column of RESPONSES: 1 where the response is the time of an event, 0 where it was only observed until then; "
         "--family cox.");
  column("--safe", rows.safe, "Column of 0 and 1: rows whose link in the order given is known to be right.");
  command
      .add_option("--mismatch", rows.mismatch,
                  "Columns on which the odds of a wrong link depend, of either table, such as how common a name is; "
                  "method mixture.")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COL");
  column("--link-probability", rows.link_probability,
         "Column with the probability that the link in the order given is right, as linkage programs print it; its log "
         "odds are calibrated by two coefficients; method mixture.");
  command
      .add_option("--wrong-rate", options.wrong_rate,
                  "How many links in the order given are wrong: a rate above 0 and below 1, or a column of rates; "
                  "methods mixture and adjusted.")
      ->type_name("R|COL");
  command
      .add_option("--audit", rows.audit,
                  "Number of links that were examined to find --wrong-rate, whose uncertainty then enters the standard "
                  "errors; default: the rate is exact.")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
}

void require_meaning(const CLI::Option& option, bool has_meaning, std::string_view with) {
  if (option.count() == 0 || has_meaning) return;
  throw InvalidInput(fmt::format("{} applies only with {}", option.get_name(), with));
}

void add_spreadsheet_option(CLI::App& command, bool& safe) {
  command.add_flag(
      "--spreadsheet-safe", safe,
      "CSV: names and cells that begin with =, +, - or @ and are not numbers get an apostrophe in front, so "
      "that a spreadsheet shows them instead of running them as formulas.");
}

std::string csv_cell(const std::string& text, bool spreadsheet_safe) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return csv_field(spreadsheet_safe && formula && !parse_number(text) ? "'" + text : text);
}

void require_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  const std::vector<std::string> read = files_of(inputs);
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    const auto same = std::find_if(outputs.begin(), output, [&](const Output& earlier) {
      return !earlier.path.empty() && same_output(earlier.path, output->path);
    });
    if (same != output) {
      throw InvalidInput(
          fmt::format("{} and {} both name {}; give each its own file", same->option, output->option, output->path));
    }
    const auto input =
        std::find_if(read.begin(), read.end(), [&](const std::string& path) { return same_file(path, output->path); });
    if (input != read.end()) {
      throw InvalidInput(fmt::format("{} {} would overwrite {}, which is read; name another file", output->option,
                                     output->path, *input));
    }
    require_writable(output->path);
  }
}

void tell_of_verdict(const std::string& fit) {
  const auto said = read_json(read_file(fit), fit);
  const auto judged = said.is_object() ? said.find("identifiable") : said.end();
  if (!said.is_object() || judged == said.end() || !judged->is_object()) return;  // a fit written by hand
  if (json_value<std::string>(*judged, "verdict", fit) != name_of(Verdict::not_identifiable)) return;
  note(fmt::format("{} is not identifiable: {}; what follows from its coefficients is one possibility among others",
                   fit, json_value<std::string>(*judged, "reason", fit)));
}

void tell_of_replaced(const std::vector<Output>& outputs) {
  for (const Output& output : outputs)
    if (!output.path.empty() && std::filesystem::is_regular_file(output.path))
      note(fmt::format("{} exists and will be replaced ({})", output.path, output.option));
}

std::vector<std::string> inputs_of(const TableOptions& options) {
  std::vector<std::string> inputs{options.events.gates};
  for (const std::string& table : {options.responses, options.features}) {
    inputs.push_back(table);
    if (table.find_first_of("*?") == std::string::npos) continue;
    const std::vector<std::string> matches = large::files_named(table);
    inputs.insert(inputs.end(), matches.begin(), matches.end());
  }
  return inputs;
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  options.model_given =
      command
          .add_option(
              "--model", options.model,
              "linear, sine, spline:K with K knots per feature; for points in the plane or in space rigid, similarity "
              "or affine.")
          ->capture_default_str();
  command.add_flag("--no-intercept", options.no_intercept, "Fit through the origin.");
}

void settle(TableOptions& tables, ModelOptions& model) {
  if (tables.formula.empty() && tables.responses.find('~') != std::string::npos &&
      !std::filesystem::exists(tables.responses)) {
    tables.formula = std::exchange(tables.responses, std::exchange(tables.features, std::exchange(tables.third, "")));
    if (tables.responses.empty()) throw InvalidInput("RESPONSES is required after the formula");
  }
  if (!tables.third.empty())
    throw InvalidInput(fmt::format("{}: two tables were expected, after a formula or without one", tables.third));
  if (tables.formula.empty()) {
    if (tables.response.empty())
      throw InvalidInput("--response is required, or a formula such as 'wage ~ age + region' before the files");
    return;
  }
  const bool named = !tables.response.empty() || tables.x_given->count() > 0 || tables.z_given->count() > 0;
  if (named) throw InvalidInput("the formula names response and features; leave out --response, --x and --z");
  if (model.no_intercept) throw InvalidInput("--no-intercept: write - 1 in the formula instead");
  model.no_intercept = !parse_formula(tables.formula).intercept;
}

std::unique_ptr<Model> ModelOptions::make() const { return make_model(model, !no_intercept); }

namespace {

/// --wrong-rate is a number or the name of a column.
RowColumns row_columns(const TableOptions& options) {
  RowColumns rows = options.rows;
  const std::optional<double> rate = parse_number(options.wrong_rate);
  if (!rate) {
    rows.wrong_rate = options.wrong_rate;
    return rows;
  }
  if (!(*rate > 0 && *rate < 1))
    throw InvalidInput(fmt::format("--wrong-rate {}: a rate above 0 and below 1, or a column, was expected", *rate));
  rows.common_wrong_rate = *rate;
  return rows;
}

}  // namespace

ColumnChoice column_choice(const TableOptions& options) {
  ColumnChoice columns;
  columns.response = options.response;
  columns.formula.text = options.formula;
  if (options.x_given != nullptr && options.x_given->count() > 0) columns.x = options.x;
  if (options.z_given != nullptr && options.z_given->count() > 0) columns.z = options.z;
  columns.weights = options.weights;
  columns.rows = row_columns(options);
  columns.groups = to_keys(options.groups);
  columns.soft_groups = to_soft_groups(options.soft_groups);
  return columns;
}

LoadedTables load(const TableOptions& options, RowOrder order) {
  ColumnChoice columns = column_choice(options);
  if (options.events.equal_mass_gates > 0) {
    columns.groups.push_back({cytometry::mass_gate_column, cytometry::mass_gate_column});
  }
  std::vector<std::string> paths{options.responses};
  if (!options.features.empty()) paths.push_back(options.features);
  std::vector<Table> tables = read_tables(paths, options.events, KeepText::where_needed, options.quiet);
  columns = by_name(columns, tables.front(), tables.size() == 1 ? nullptr : &tables.back());
  columns.events = to_remember(options.events);
  const PrepareOptions preparing{missing_named(options.missing), dates_named(options.dates),
                                 order == RowOrder::probably_linked};
  Preparation rows = prepare(tables.front(), tables.size() == 1 ? nullptr : &tables.back(), columns, preparing);
  add_mass_gates(tables.front(), options.events, columns.response);
  TablesAsProblem loaded =
      tables.size() == 1 ? table_to_problem(tables[0], columns) : tables_to_problem(tables[0], tables[1], columns);
  require_common_values(loaded.problem.soft_keys, options.soft_groups);
  if (!options.quiet) {
    for (const auto& notes : {rows.notes, loaded.notes})
      for (const std::string& one : notes) note(one);
  }
  return {std::move(loaded.problem), std::move(loaded.columns), std::move(rows)};
}

void use_threads(int threads) {
  require_threads(threads);
  if (threads > 0) omp_set_num_threads(threads);
}

}  // namespace unshuffle::app
