// Result files against ground truth files, sequence by sequence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/metrics.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct SequenceCounts {
  std::string name;
  Counts counts;
};

struct FileEvaluation {
  std::vector<SequenceCounts> sequences;  ///< By name, then COMBINED: the counts of all of them added up.
  std::vector<std::string> notes;         ///< One sentence each: what was skipped.
};

/// `truth` is a folder of sequences (SEQUENCE/gt/gt.txt), one sequence folder or a gt.txt; `results` a folder with
/// SEQUENCE.txt, or with data/SEQUENCE.txt as TrackEval has it, or one result file. Without a benchmark the names of
/// the sequences determine the rules.
[[nodiscard]] FileEvaluation evaluate_files(const std::string& truth, const std::string& results,
                                            std::optional<Benchmark> benchmark = {});

/// "mot15", "mot16", "mot17" or "mot20"; nothing for "auto". Throws InvalidInput for anything else.
[[nodiscard]] std::optional<Benchmark> benchmark_named(const std::string& name);

/// A score or a count by the name it has in JSON and CSV.
struct NamedNumber {
  const char* name;
  double value;   ///< NaN where there was nothing to divide by.
  bool is_count;  ///< A whole number.
};
[[nodiscard]] std::vector<NamedNumber> numbers_of(const Counts& counts);

}  // namespace tracking
}  // namespace unshuffle
