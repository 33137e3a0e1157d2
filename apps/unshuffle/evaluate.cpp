// unshuffle evaluate: tracking results against ground truth.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/read_json.hpp"
#include "options.hpp"
#include "say.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tables/table.hpp"
#include "unshuffle/tracking/evaluation.hpp"

namespace unshuffle::app {
namespace {

using tracking::Counts;
using tracking::SequenceCounts;

struct EvaluateCommand {
  std::string truth;
  std::string results;
  std::string benchmark = "auto";
  std::string csv;
  std::string out;
  bool json = false;
  bool quiet = false;
  bool spreadsheet_safe = false;
};

/// Every number by its name, in the order of the table.
nlohmann::ordered_json to_json(const Counts& counts) {
  nlohmann::ordered_json object;
  for (const tracking::NamedNumber& number : tracking::numbers_of(counts)) {
    object[number.name] = number.is_count ? nlohmann::ordered_json(static_cast<long>(number.value))
                                          : nlohmann::ordered_json(number.value);
  }
  return object;
}

std::string to_csv(const std::vector<SequenceCounts>& rows, bool spreadsheet_safe) {
  std::string out = "sequence";
  const auto columns = to_json(rows.front().counts);
  for (const auto& [key, value] : columns.items()) out += "," + key;
  out += '\n';
  for (const SequenceCounts& row : rows) {
    out += csv_cell(row.name, spreadsheet_safe);
    const auto values = to_json(row.counts);
    for (const auto& [key, value] : values.items()) {
      out += ',';
      if (value.is_number_integer()) {
        out += fmt::format("{}", value.get<long>());
      } else if (std::isfinite(value.get<double>())) {
        append_number(out, value.get<double>());
      }
    }
    out += '\n';
  }
  return out;
}

std::string to_json_text(const std::vector<SequenceCounts>& rows) {
  nlohmann::ordered_json object;
  for (const SequenceCounts& row : rows) object[row.name] = to_json(row.counts);
  return json_text(object, 2);
}

void print_table(const std::vector<SequenceCounts>& rows) {
  std::size_t widest = 8;
  for (const SequenceCounts& row : rows) widest = std::max(widest, row.name.size());
  const std::vector<std::pair<const char*, const char*>> shares{
      {"HOTA", "hota"}, {"DetA", "det_a"}, {"AssA", "ass_a"},  {"LocA", "loc_a"},    {"MOTA", "mota"},
      {"MOTP", "motp"}, {"IDF1", "idf1"},  {"Rcll", "recall"}, {"Prcn", "precision"}};
  const std::vector<std::pair<const char*, const char*>> counts{
      {"GT", "gt"}, {"MT", "mt"}, {"PT", "pt"}, {"ML", "ml"}, {"FP", "fp"}, {"FN", "fn"}, {"IDs", "ids"}, {"FM", "fm"}};
  fmt::print("{:<{}}", "sequence", widest);
  for (const auto& [title, key] : shares) fmt::print("{:>7}", title);
  for (const auto& [title, key] : counts) fmt::print("{:>7}", title);
  fmt::print("\n");
  for (const SequenceCounts& row : rows) {
    const auto values = to_json(row.counts);
    say(fmt::format("{:<{}}", row.name, widest));
    for (const auto& [title, key] : shares) fmt::print("{:>7.1f}", 100 * values[key].get<double>());
    for (const auto& [title, key] : counts) fmt::print("{:>7}", values[key].get<long>());
    fmt::print("\n");
  }
}

int run(const EvaluateCommand& command) {
  require_outputs({{"--csv", command.csv}, {"--out", command.out}}, {command.truth, command.results});
  const auto [rows, notes] =
      tracking::evaluate_files(command.truth, command.results, tracking::benchmark_named(command.benchmark));
  if (!command.quiet) {
    for (const std::string& one : notes) note(one);
  }
  if (!command.quiet) tell_of_replaced({{"--csv", command.csv}, {"--out", command.out}});
  if (!command.csv.empty()) write_whole_file(command.csv, to_csv(rows, command.spreadsheet_safe));
  if (!command.out.empty()) write_whole_file(command.out, to_json_text(rows));
  if (command.json) {
    fmt::print("{}", to_json_text(rows));
  } else if (!command.quiet) {
    print_table(rows);
  }
  return 0;
}

}  // namespace

Command add_evaluate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("evaluate", "Compare tracking results with ground truth (MOTChallenge files).");
  const auto command = std::make_shared<EvaluateCommand>();
  app->add_option(
         "--gt", command->truth,
         "A folder of sequences (SEQUENCE/gt/gt.txt, seqinfo.ini beside gt), one sequence folder, or a gt.txt.")
      ->required();
  app->add_option("--results", command->results,
                  "The folder with SEQUENCE.txt or data/SEQUENCE.txt, or one result file.")
      ->required();
  app->add_option("--benchmark", command->benchmark,
                  "Benchmark whose rules decide which boxes count; auto: by the name of the sequence.")
      ->check(CLI::IsMember({"auto", "mot15", "mot16", "mot17", "mot20"}))
      ->capture_default_str();
  app->add_option("--csv", command->csv, "Write every number as CSV, one row per sequence and one for all.");
  app->add_option("--out", command->out, "Write every number as JSON.");
  app->add_flag("--json", command->json, "Print the JSON instead of the table.");
  add_spreadsheet_option(*app, command->spreadsheet_safe);
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  app->footer(
      "HOTA, DetA, AssA, LocA, MOTA, MOTP (mean overlap), IDF1, recall and precision are percentages in the table and\n"
      "shares in CSV and JSON. COMBINED adds the counts of all sequences before dividing.\n\n"
      "Example:\n"
      "  unshuffle track MOT15/train/TUD-Campus --tracker sort --out results\n"
      "  unshuffle evaluate --gt MOT15/train --results results --csv scores.csv");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
