#include "unshuffle/tracking/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/text.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::tracking {
namespace {

namespace fs = std::filesystem;

/// The files of one sequence.
struct Pair {
  std::string name;
  std::string truth;
  std::string results;
  int length = 0;  ///< 0: from the files.
};

Pair pair_of(const fs::path& folder, const std::string& results) {
  const SequenceInfo info = info_of_folder(folder.string());
  Pair pair{info.name, (folder / "gt" / "gt.txt").string(), results, info.length};
  if (fs::is_directory(results)) pair.results = (fs::path(results) / (file_name_for(pair.name) + ".txt")).string();
  return pair;
}

/// TrackEval keeps the results of a tracker in a folder "data" of the tracker's own.
std::string folder_of_results(const std::string& results) {
  const fs::path inner = fs::path(results) / "data";
  if (!fs::is_directory(inner)) return results;
  const auto is_result = [](const fs::directory_entry& entry) { return entry.path().extension() == ".txt"; };
  const bool here = std::any_of(fs::directory_iterator(results), fs::directory_iterator{}, is_result);
  return here ? results : inner.string();
}

/// A file, one sequence folder, or a folder of sequence folders.
std::vector<Pair> find_pairs(const std::string& truth_path, const std::string& results) {
  const fs::path truth(truth_path);
  if (fs::is_regular_file(truth)) return {{truth.stem().string(), truth_path, results}};
  if (fs::exists(truth / "gt" / "gt.txt")) return {pair_of(truth, results)};
  if (!fs::is_directory(truth)) throw BadData(fmt::format("{}: there is no such file or folder", truth_path));
  if (!fs::is_directory(results)) {
    throw BadData(fmt::format("{}: a folder with one SEQUENCE.txt per sequence was expected", results));
  }
  std::map<std::string, Pair> pairs;
  for (const auto& entry : fs::directory_iterator(truth)) {
    if (!fs::exists(entry.path() / "gt" / "gt.txt")) continue;
    Pair pair = pair_of(entry.path(), results);
    pairs.emplace(pair.name, std::move(pair));
  }
  std::vector<Pair> wanted;
  for (auto& [name, pair] : pairs) wanted.push_back(std::move(pair));
  if (wanted.empty()) {
    throw BadData(fmt::format("{}: no SEQUENCE/gt/gt.txt below it, nor gt/gt.txt in it", truth_path));
  }
  return wanted;
}

/// With a folder of results, only the sequences that have a file are compared; the others are named.
void keep_those_with_results(std::vector<Pair>& pairs, const std::string& results, std::vector<std::string>& notes) {
  if (!fs::is_directory(results)) return;
  std::vector<std::string> missing;
  std::erase_if(pairs, [&](const Pair& pair) {
    const bool absent = !fs::exists(pair.results);
    if (absent) missing.push_back(pair.name);
    return absent;
  });
  if (pairs.empty()) {
    throw BadData(
        fmt::format("{}: holds no results for {}; SEQUENCE.txt was expected", results, fmt::join(missing, ", ")));
  }
  if (!missing.empty()) notes.push_back(fmt::format("skipped, as there are no results: {}", fmt::join(missing, ", ")));
}

Counts compare(const Pair& pair, std::optional<Benchmark> benchmark) {
  const Labels truth = read_labels(pair.truth, pair.length);
  const int length = pair.length > 0 ? pair.length : static_cast<int>(truth.frames.size());
  const Labels results = read_labels(pair.results, length);
  return evaluate(truth, results, benchmark ? *benchmark : benchmark_of(pair.name, truth));
}

}  // namespace

FileEvaluation evaluate_files(const std::string& truth, const std::string& results,
                              std::optional<Benchmark> benchmark) {
  FileEvaluation evaluation;
  const std::string folder = folder_of_results(results);
  std::vector<Pair> pairs = find_pairs(truth, folder);
  keep_those_with_results(pairs, folder, evaluation.notes);
  Counts all;
  for (const Pair& pair : pairs) {
    evaluation.sequences.push_back({pair.name, compare(pair, benchmark)});
    all += evaluation.sequences.back().counts;
  }
  evaluation.sequences.push_back({"COMBINED", all});
  return evaluation;
}

std::optional<Benchmark> benchmark_named(const std::string& name) {
  static const std::map<std::string, std::optional<Benchmark>> named{{"auto", {}},
                                                                     {"mot15", Benchmark::mot15},
                                                                     {"mot16", Benchmark::mot17},
                                                                     {"mot17", Benchmark::mot17},
                                                                     {"mot20", Benchmark::mot20}};
  const auto found = named.find(name);
  if (found != named.end()) return found->second;
  throw InvalidInput(fmt::format("benchmark {}: auto, mot15, mot16, mot17 or mot20 was expected", name));
}

std::vector<NamedNumber> numbers_of(const Counts& counts) {
  const Scores scores = scores_of(counts);
  const auto share = [](const char* name, double value) { return NamedNumber{name, value, false}; };
  const auto count = [](const char* name, long value) { return NamedNumber{name, double(value), true}; };
  return {share("hota", scores.hota),
          share("det_a", scores.det_a),
          share("ass_a", scores.ass_a),
          share("det_recall", scores.det_recall),
          share("det_precision", scores.det_precision),
          share("ass_recall", scores.ass_recall),
          share("ass_precision", scores.ass_precision),
          share("loc_a", scores.loc_a),
          share("mota", scores.mota),
          share("motp", scores.motp),
          share("motp_distance", 1 - scores.motp),
          share("idf1", scores.idf1),
          share("idp", scores.id_precision),
          share("idr", scores.id_recall),
          share("recall", scores.recall),
          share("precision", scores.precision),
          count("frames", counts.frames),
          count("gt", counts.truth_tracks),
          count("mt", counts.mostly_tracked),
          count("pt", counts.partly_tracked()),
          count("ml", counts.mostly_lost),
          count("tp", counts.matches),
          count("fp", counts.false_positives),
          count("fn", counts.misses),
          count("ids", counts.switches),
          count("fm", counts.fragmentations),
          count("idtp", counts.identity_true_positives),
          count("idfp", counts.result_boxes - counts.identity_true_positives),
          count("idfn", counts.truth_boxes - counts.identity_true_positives),
          count("gt_boxes", counts.truth_boxes),
          count("result_boxes", counts.result_boxes),
          count("result_tracks", counts.result_tracks)};
}

}  // namespace unshuffle::tracking
