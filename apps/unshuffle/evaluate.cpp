// unshuffle evaluate: tracking results against ground truth.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.hpp"
#include "unshuffle/data/output_file.hpp"
#include "unshuffle/data/table.hpp"
#include "unshuffle/error.hpp"
#include "unshuffle/tracking/metrics.hpp"

namespace unshuffle::app {
namespace {

namespace fs = std::filesystem;
using tracking::Benchmark;
using tracking::Counts;

struct EvaluateCommand {
  std::string truth;
  std::string results;
  std::string benchmark = "auto";
  std::string csv;
  std::string out;
  bool json = false;
  bool quiet = false;
};

/// Where one sequence lies.
struct Pair {
  std::string name;
  std::string truth;
  std::string results;
  int length = 0;  ///< 0: as the files have it.
};

struct Row {
  std::string name;
  Counts counts;
};

Pair pair_of(const fs::path& folder, const std::string& results) {
  const auto info = tracking::info_of_folder(folder.string());
  Pair pair{info.name, (folder / "gt" / "gt.txt").string(), results, info.length};
  if (fs::is_directory(results)) pair.results = (fs::path(results) / (pair.name + ".txt")).string();
  return pair;
}

/// A file, one sequence folder, or a folder of sequence folders.
std::vector<Pair> find_pairs(const EvaluateCommand& command) {
  const fs::path truth(command.truth);
  if (fs::is_regular_file(truth)) return {{truth.stem().string(), command.truth, command.results}};
  if (fs::exists(truth / "gt" / "gt.txt")) return {pair_of(truth, command.results)};
  if (!fs::is_directory(truth)) throw BadData(fmt::format("{}: there is no such file or folder", command.truth));
  if (!fs::is_directory(command.results)) {
    throw BadData(fmt::format("{}: a folder with one SEQUENCE.txt per sequence was expected", command.results));
  }
  std::map<std::string, Pair> pairs;
  for (const auto& entry : fs::directory_iterator(truth)) {
    if (!fs::exists(entry.path() / "gt" / "gt.txt")) continue;
    Pair pair = pair_of(entry.path(), command.results);
    pairs.emplace(pair.name, std::move(pair));
  }
  std::vector<Pair> wanted;
  for (auto& [name, pair] : pairs) wanted.push_back(std::move(pair));
  if (wanted.empty()) {
    throw BadData(fmt::format("{}: no SEQUENCE/gt/gt.txt below it, nor gt/gt.txt in it", command.truth));
  }
  return wanted;
}

/// With a folder of results, only the sequences that have a file are compared; the others are named.
void keep_those_with_results(std::vector<Pair>& pairs, const EvaluateCommand& command) {
  if (!fs::is_directory(command.results)) return;
  std::vector<std::string> missing;
  std::erase_if(pairs, [&](const Pair& pair) {
    const bool absent = !fs::exists(pair.results);
    if (absent) missing.push_back(pair.name);
    return absent;
  });
  if (pairs.empty()) {
    throw BadData(fmt::format("{}: holds no results for {}; SEQUENCE.txt was expected", command.results,
                              fmt::join(missing, ", ")));
  }
  if (!missing.empty() && !command.quiet) {
    fmt::print(stderr, "unshuffle: note: no results and so left out: {}\n", fmt::join(missing, ", "));
  }
}

Benchmark to_benchmark(const std::string& name, const Pair& pair, const tracking::Labels& truth) {
  static const std::map<std::string, Benchmark> named{{"mot15", Benchmark::mot15},
                                                      {"mot16", Benchmark::mot17},
                                                      {"mot17", Benchmark::mot17},
                                                      {"mot20", Benchmark::mot20}};
  const auto found = named.find(name);
  return found != named.end() ? found->second : tracking::benchmark_of(pair.name, truth);
}

Counts compare(const Pair& pair, const EvaluateCommand& command) {
  const tracking::Labels truth = tracking::read_labels(pair.truth, pair.length);
  const int length = pair.length > 0 ? pair.length : static_cast<int>(truth.frames.size());
  const tracking::Labels results = tracking::read_labels(pair.results, length);
  return tracking::evaluate(truth, results, to_benchmark(command.benchmark, pair, truth));
}

/// Every number by its name, in the order of the table.
nlohmann::ordered_json to_json(const Counts& counts) {
  const tracking::Scores scores = tracking::scores_of(counts);
  return {{"hota", scores.hota},
          {"det_a", scores.det_a},
          {"ass_a", scores.ass_a},
          {"det_recall", scores.det_recall},
          {"det_precision", scores.det_precision},
          {"ass_recall", scores.ass_recall},
          {"ass_precision", scores.ass_precision},
          {"loc_a", scores.loc_a},
          {"mota", scores.mota},
          {"motp", scores.motp},
          {"motp_distance", 1 - scores.motp},
          {"idf1", scores.idf1},
          {"idp", scores.id_precision},
          {"idr", scores.id_recall},
          {"recall", scores.recall},
          {"precision", scores.precision},
          {"frames", counts.frames},
          {"gt", counts.truth_tracks},
          {"mt", counts.mostly_tracked},
          {"pt", counts.partly_tracked},
          {"ml", counts.mostly_lost},
          {"tp", counts.matches},
          {"fp", counts.false_positives},
          {"fn", counts.misses},
          {"ids", counts.switches},
          {"fm", counts.fragmentations},
          {"idtp", counts.identity_true_positives},
          {"idfp", counts.result_boxes - counts.identity_true_positives},
          {"idfn", counts.truth_boxes - counts.identity_true_positives},
          {"gt_boxes", counts.truth_boxes},
          {"result_boxes", counts.result_boxes},
          {"result_tracks", counts.result_tracks}};
}

std::string to_csv(const std::vector<Row>& rows) {
  std::string out = "sequence";
  const auto columns = to_json(rows.front().counts);
  for (const auto& [key, value] : columns.items()) out += "," + key;
  out += '\n';
  for (const Row& row : rows) {
    out += csv_field(row.name);
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

std::string to_json_text(const std::vector<Row>& rows) {
  nlohmann::ordered_json object;
  for (const Row& row : rows) object[row.name] = to_json(row.counts);
  return object.dump(2) + "\n";
}

void print_table(const std::vector<Row>& rows) {
  std::size_t widest = 8;
  for (const Row& row : rows) widest = std::max(widest, row.name.size());
  const std::vector<std::pair<const char*, const char*>> shares{
      {"HOTA", "hota"}, {"DetA", "det_a"}, {"AssA", "ass_a"},  {"LocA", "loc_a"},    {"MOTA", "mota"},
      {"MOTP", "motp"}, {"IDF1", "idf1"},  {"Rcll", "recall"}, {"Prcn", "precision"}};
  const std::vector<std::pair<const char*, const char*>> counts{
      {"GT", "gt"}, {"MT", "mt"}, {"PT", "pt"}, {"ML", "ml"}, {"FP", "fp"}, {"FN", "fn"}, {"IDs", "ids"}, {"FM", "fm"}};
  fmt::print("{:<{}}", "sequence", widest);
  for (const auto& [title, key] : shares) fmt::print("{:>7}", title);
  for (const auto& [title, key] : counts) fmt::print("{:>7}", title);
  fmt::print("\n");
  for (const Row& row : rows) {
    const auto values = to_json(row.counts);
    fmt::print("{:<{}}", row.name, widest);
    for (const auto& [title, key] : shares) fmt::print("{:>7.1f}", 100 * values[key].get<double>());
    for (const auto& [title, key] : counts) fmt::print("{:>7}", values[key].get<long>());
    fmt::print("\n");
  }
}

int run(const EvaluateCommand& command) {
  for (const std::string& path : {command.csv, command.out}) {
    if (!path.empty()) require_writable(path);
  }
  std::vector<Pair> pairs = find_pairs(command);
  keep_those_with_results(pairs, command);
  std::vector<Row> rows;
  Counts all;
  for (const Pair& pair : pairs) {
    rows.push_back({pair.name, compare(pair, command)});
    all += rows.back().counts;
  }
  rows.push_back({"COMBINED", all});
  if (!command.csv.empty()) write_whole_file(command.csv, to_csv(rows));
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
  app->add_option("--results", command->results, "The folder with SEQUENCE.txt, or one result file.")->required();
  app->add_option("--benchmark", command->benchmark,
                  "Whose rules say which boxes count; auto goes by the name of the sequence.")
      ->check(CLI::IsMember({"auto", "mot15", "mot16", "mot17", "mot20"}))
      ->capture_default_str();
  app->add_option("--csv", command->csv, "Write every number as CSV, one row per sequence and one for all.");
  app->add_option("--out", command->out, "Write every number as JSON.");
  app->add_flag("--json", command->json, "Print the JSON instead of the table.");
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
