// The contribution of each part of the tracker:
//   bench_tracking_ablation defaults|terms|training|gates DATA OUT.csv [SEQUENCE...]
//
// DATA holds MOTChallenge folders with ground truth. One line per variant, sequence and seed; every model is trained on
// the detections of the very video it is scored on, the ground truth is used for scoring and for the bound only.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tracking/metrics.hpp"
#include "unshuffle/tracking/support.hpp"
#include "unshuffle/tracking/train.hpp"

namespace {

using namespace unshuffle;
using namespace unshuffle::tracking;

struct Video {
  Detections detections;
  Labels truth;
};

struct Lines {
  std::string csv = "variant,sequence,seed,hota,idf1,ids,mota,fp,fn\n";
  std::vector<std::string> variants;                  ///< In the order they came in.
  std::map<std::string, std::vector<Counts>> counts;  ///< Of every variant, video by video.

  void add(const std::string& variant, const std::string& sequence, int seed, const Counts& found) {
    const Scores scores = scores_of(found);
    const std::string line =
        fmt::format("{},{},{},{:.4f},{:.4f},{},{:.4f},{},{}\n", variant, sequence, seed, scores.hota, scores.idf1,
                    found.switches, scores.mota, found.false_positives, found.misses);
    fmt::print("{}", line);
    std::fflush(stdout);
    csv += line;
  }

  void add(const std::string& variant, const Video& video, const Labels& results) {
    const std::string& name = video.detections.info.name;
    const Counts found = evaluate(video.truth, results, benchmark_of(name, video.truth));
    if (counts[variant].empty()) variants.push_back(variant);
    counts[variant].push_back(found);
    add(variant, name, 0, found);
  }

  void add(const std::string& variant, const Video& video, int seed, const MotionModel& model, bool camera,
           TrackerOptions options = {}) {
    options.camera = camera;
    Labels results;
    results.frames = track(video.detections, model, options);
    const std::string& name = video.detections.info.name;
    add(variant, name, seed, evaluate(video.truth, results, benchmark_of(name, video.truth)));
  }
};

MotionModel trained(const Detections& detections, const TrainOptions& options, int hidden = 0) {
  MotionModel start(hidden);
  start.draw_hidden_weights(options.seed);
  TrainState state(start);
  train(state, {detections}, options);
  return state.best;
}

/// The linear model without the inputs from `first` on, `count` of them.
MotionModel without_inputs(const MotionModel& model, int first, int count) {
  Vector values = model.values();
  values.segment(3 * first, 3 * count).setZero();
  MotionModel reduced(model.hidden());
  reduced.set_values(values);
  return reduced;
}

/// 20 % of the detections taken away and as many false ones put anywhere in the image.
Detections corrupted(const Detections& clean, std::uint64_t seed) {
  constexpr double share = 0.2;
  RandomStream random(seed, 0);
  Detections noisy = clean;
  for (auto& frame : noisy.frames) {
    const auto boxes = frame;
    frame.clear();
    for (const Detection& detection : boxes) {
      if (random.uniform() > share) frame.push_back(detection);
      if (random.uniform() > share) continue;
      Detection wrong = detection;
      wrong.box.left = random.uniform() * (clean.info.width - wrong.box.width);
      wrong.box.top = random.uniform() * (clean.info.height - wrong.box.height);
      frame.push_back(wrong);
    }
  }
  return noisy;
}

/// The defaults with one thing changed.
std::vector<std::pair<std::string, TrackerOptions>> one_change_each() {
  TrackerOptions usual;
  usual.camera = false;
  std::vector<std::pair<std::string, TrackerOptions>> all{{"defaults", usual}};
  const auto changed = [&](const std::string& what, const auto& change) {
    all.emplace_back(what, usual);
    change(all.back().second);
  };
  changed("every score trusted", [](auto& options) { options.trust = {.birth = 0, .match = 0, .least = 0}; });
  changed("births from all that are matched first", [](auto& options) { options.trust.birth = 0; });
  changed("births from trust 0.9", [](auto& options) { options.trust.birth = 0.9; });
  changed("no second association", [](auto& options) { options.trust.least = options.trust.match; });
  changed("second association from trust 0.3", [](auto& options) { options.trust.least = 0.3; });
  for (const double gate : {0.5, 0.3, 0.2}) {
    changed(fmt::format("gate {}", gate), [&](auto& options) { options.least_overlap = gate; });
  }
  for (const double gate : {0.5, 0.3}) {
    changed(fmt::format("recovery {}", gate), [&](auto& options) { options.recovery_overlap = gate; });
  }
  for (const double step : {0.0, 0.01}) {
    changed(fmt::format("widening {}", step), [&](auto& options) { options.widening = step; });
  }
  for (const int frames : {30, 60}) {
    changed(fmt::format("death {}", frames), [&](auto& options) { options.longest_absence = frames; });
  }
  for (const int frames : {0, 15, 30}) {
    changed(fmt::format("longest gap {}", frames), [&](auto& options) { options.longest_gap = frames; });
  }
  for (const double weight : {0.05, 0.2}) {
    changed(fmt::format("smoothing {}", weight), [&](auto& options) { options.smoothing = weight; });
  }
  changed("birth wait 2", [](auto& options) { options.birth_wait = 2; });
  changed("camera on", [](auto& options) { options.camera = true; });
  return all;
}

/// Constant velocity under the defaults and beside them; only detections are used.
void compare_defaults(Lines& lines, const Video& video) {
  const MotionModel model = MotionModel::constant_velocity();
  for (const auto& [name, options] : one_change_each()) {
    lines.add(name, video, Labels{track(video.detections, model, options), 0});
  }
  TrackerOptions options;
  options.camera = supported_terms(video.detections, {}, {}).camera;
  lines.add("camera where supported", video, Labels{track(video.detections, model, options), 0});
  options.camera = false;
  Tracker online(model, {video.detections.info.width, video.detections.info.height}, options);
  for (const auto& frame : video.detections.frames) online.step(frame);
  lines.add("scores trusted from the frames so far", video, Labels{online.results(), 0});
}

/// The mean of HOTA, IDF1 and MOTA over all videos but one.
double score_without(const std::vector<Counts>& counts, std::size_t left_out) {
  double sum = 0;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    if (at == left_out) continue;
    const Scores scores = scores_of(counts[at]);
    sum += scores.hota + scores.idf1 + scores.mota;
  }
  return sum;
}

/// All videos together, and for each the variant that is best on the others.
void add_summaries(Lines& lines, const std::vector<std::string>& names) {
  for (const std::string& variant : lines.variants) {
    Counts all;
    for (const Counts& one : lines.counts[variant]) all += one;
    lines.add(variant, "COMBINED", 0, all);
  }
  Counts all;
  for (std::size_t at = 0; at < names.size() && !lines.variants.empty(); ++at) {
    const auto best = std::max_element(lines.variants.begin(), lines.variants.end(), [&](const auto& a, const auto& b) {
      return score_without(lines.counts[a], at) < score_without(lines.counts[b], at);
    });
    lines.add("chosen on the others: " + *best, names[at], 0, lines.counts[*best][at]);
    all += lines.counts[*best][at];
  }
  if (!lines.variants.empty()) lines.add("chosen on the others", "COMBINED", 0, all);
}

/// Each term on its own and taken away.
void compare_terms(Lines& lines, const Video& video) {
  lines.add("identity", video, 0, MotionModel(), false);
  lines.add("constant velocity", video, 0, MotionModel::constant_velocity(), false);
  lines.add("identity + camera", video, 0, MotionModel(), true);
  lines.add("constant velocity + camera", video, 0, MotionModel::constant_velocity(), true);
  const MotionModel model = trained(video.detections, {});
  lines.add("trained + camera", video, 1, model, true);
  lines.add("trained + camera; without place", video, 1, without_inputs(model, 0, 3), true);
  lines.add("trained + camera; without last step", video, 1, without_inputs(model, 3, 3), true);
  lines.add("trained + camera; without mean step", video, 1, without_inputs(model, 6, 3), true);
}

/// Seeds, the bound with true links, a larger model, no camera, and what false and missing detections do to training.
void compare_training(Lines& lines, const Video& video) {
  TrainOptions options;
  TrainOptions exact = options;
  exact.unmatched = 0;
  for (const int draw : {1, 2, 3}) {
    const Detections noisy = corrupted(video.detections, static_cast<std::uint64_t>(draw));
    lines.add("trained on corrupted; robust", video, draw, trained(noisy, options), true);
    lines.add("trained on corrupted; exact", video, draw, trained(noisy, exact), true);
  }
  lines.add("trained with true links + camera", video, 1, trained_with_links(video.detections, video.truth, options),
            true);
  for (const std::uint64_t seed : {2U, 3U}) {
    options.seed = seed;
    lines.add("trained + camera", video, static_cast<int>(seed), trained(video.detections, options), true);
  }
  options.seed = 1;
  lines.add("trained mlp:8 + camera", video, 1, trained(video.detections, options, 8), true);
  options.tracker.camera = false;
  lines.add("trained without camera", video, 1, trained(video.detections, options), false);
}

/// The confidence that a share of all detections stays below.
double confidence_above(const Detections& detections, double share) {
  std::vector<double> all;
  for (const auto& frame : detections.frames) {
    for (const Detection& detection : frame) all.push_back(detection.confidence);
  }
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(share * static_cast<double>(all.size()))];
}

/// Which overlap a prediction must have with its detection, how long a lost track is waited for, and what is left when
/// the least confident detections, most of which are false, are not used.
void compare_gates(Lines& lines, const Video& video) {
  const MotionModel model = trained(video.detections, {});
  const auto at = [&](const std::string& gate, const TrackerOptions& options) {
    lines.add(gate + "; identity", video, 0, MotionModel(), false, options);
    lines.add(gate + "; constant velocity", video, 0, MotionModel::constant_velocity(), false, options);
    lines.add(gate + "; trained + camera", video, 1, model, true, options);
  };
  TrackerOptions options;
  for (const double overlap : {0.5, 0.4, 0.3}) {
    options.least_overlap = options.recovery_overlap = overlap;
    at(fmt::format("gate {}", overlap), options);
  }
  options.longest_absence = 10;
  at("gate 0.3 death 10", options);
  for (const double share : {0.1, 0.2, 0.3, 0.4}) {
    options = {};
    options.least_confidence = confidence_above(video.detections, share);
    at(fmt::format("least confident {} left out", share), options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  const std::map<std::string, void (*)(Lines&, const Video&)> kinds{{"defaults", compare_defaults},
                                                                    {"terms", compare_terms},
                                                                    {"training", compare_training},
                                                                    {"gates", compare_gates}};
  if (argc < 4 || !kinds.contains(kind)) {
    fmt::print(stderr, "usage: {} defaults|terms|training|gates DATA OUT.csv [SEQUENCE...]\n", argv[0]);
    return 2;
  }
  const std::filesystem::path data(argv[2]);
  std::vector<std::string> names(argv + 4, argv + argc);
  if (names.empty()) {
    names = {"ETH-Sunnyday", "ETH-Bahnhof", "ADL-Rundle-6", "KITTI-17",       "MOT17-05-FRCNN", "MOT17-10-FRCNN",
             "TUD-Campus",   "PETS09-S2L1", "MOT20-01",     "MOT17-02-FRCNN", "MOT17-04-FRCNN"};
  }
  Lines lines;
  for (const std::string& name : names) {
    Video video{read_detections((data / name).string()), {}};
    video.truth = read_labels((data / name / "gt" / "gt.txt").string(), video.detections.info.length);
    kinds.at(kind)(lines, video);
    write_whole_file(argv[3], lines.csv);
  }
  add_summaries(lines, names);
  write_whole_file(argv[3], lines.csv);
  return 0;
}
