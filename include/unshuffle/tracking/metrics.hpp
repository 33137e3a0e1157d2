// How well results agree with ground truth: CLEAR MOT, identity scores and HOTA.
//
// Everything is kept as sums, so sequences combine by adding them up.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

/// Which ground truth counts, and which results are ignored.
enum class Benchmark {
  mot15,  ///< Ground truth with confidence ≠ 0.
  mot17,  ///< MOT16 and MOT17: pedestrians with confidence ≠ 0; results on classes 2, 7, 8, 12 are removed.
  mot20,  ///< As mot17, with results on class 6 removed too.
};

/// By the prefix MOT16-, MOT17- or MOT20-; other names are MOT15 unless the lines have nine columns, the last being the
/// visibility introduced by MOT16.
[[nodiscard]] Benchmark benchmark_of(const std::string& name, const Labels& ground_truth);

/// HOTA's sums at one localisation threshold α.
struct HotaCounts {
  double true_positives = 0;
  double misses = 0;
  double false_positives = 0;
  double association = 0;            ///< Σ over true positives of M/(g + r - M).
  double association_recall = 0;     ///< Σ of M/g.
  double association_precision = 0;  ///< Σ of M/r.
  double overlap = 0;
};

constexpr int hota_thresholds = 19;  ///< α = .05, .10, ... .95.

struct Counts {
  long frames = 0;
  long truth_boxes = 0;
  long result_boxes = 0;
  long truth_tracks = 0;
  long result_tracks = 0;
  long matches = 0;
  long misses = 0;
  long false_positives = 0;
  long switches = 0;
  long fragmentations = 0;
  double overlap = 0;  ///< Σ IoU over matches.
  long mostly_tracked = 0;
  long mostly_lost = 0;
  long identity_true_positives = 0;
  std::array<HotaCounts, hota_thresholds> hota{};

  [[nodiscard]] long partly_tracked() const { return truth_tracks - mostly_tracked - mostly_lost; }

  Counts& operator+=(const Counts& other);
};

/// Scores as shares; NaN where the denominator is zero.
struct Scores {
  double hota, det_a, ass_a, loc_a;
  double det_recall, det_precision, ass_recall, ass_precision;
  double mota, motp, recall, precision;
  double idf1, id_precision, id_recall;
};

[[nodiscard]] Scores scores_of(const Counts& counts);

/// Throws BadData if an id occurs twice in a frame.
[[nodiscard]] Counts evaluate(const Labels& ground_truth, const Labels& results, Benchmark benchmark);

/// Frames of ground truth that count and of results that remain after the benchmark's rules.
struct Prepared {
  std::vector<std::vector<LabelledBox>> truth;
  std::vector<std::vector<LabelledBox>> results;
};
[[nodiscard]] Prepared prepare(const Labels& ground_truth, const Labels& results, Benchmark benchmark);

}  // namespace tracking
}  // namespace unshuffle
