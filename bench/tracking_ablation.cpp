// The contribution of each part of the tracker: bench_tracking_ablation terms|training|gates DATA OUT.csv [SEQUENCE...]
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

  void add(const std::string& variant, const Video& video, int seed, const MotionModel& model, bool camera,
           TrackerOptions options = {}) {
    options.camera = camera;
    Labels results;
    results.frames = track(video.detections, model, options);
    const std::string& name = video.detections.info.name;
    const Counts counts = evaluate(video.truth, results, benchmark_of(name, video.truth));
    const Scores scores = scores_of(counts);
    const std::string line =
        fmt::format("{},{},{},{:.4f},{:.4f},{},{:.4f},{},{}\n", variant, name, seed, scores.hota, scores.idf1,
                    counts.switches, scores.mota, counts.false_positives, counts.misses);
    fmt::print("{}", line);
    std::fflush(stdout);
    csv += line;
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
  const std::map<std::string, void (*)(Lines&, const Video&)> kinds{
      {"terms", compare_terms}, {"training", compare_training}, {"gates", compare_gates}};
  if (argc < 4 || !kinds.contains(kind)) {
    fmt::print(stderr, "usage: {} terms|training|gates DATA OUT.csv [SEQUENCE...]\n", argv[0]);
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
  return 0;
}
