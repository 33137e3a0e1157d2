// Multi-object tracking: SORT, and a tracker whose motion model is untrained, trained without links, or with them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "reproduce/summaries.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tracking/metrics.hpp"
#include "unshuffle/tracking/sort.hpp"
#include "unshuffle/tracking/train.hpp"

namespace unshuffle::app {
namespace mot_parts {

const std::string trained = "ROBOT-trained + camera";
const std::vector<std::string> methods{"SORT", "identity", "constant velocity", trained, "trained with true links"};
const std::vector<std::string> quantities{"MOTA", "MOTP", "IDF1", "HOTA", "MT", "ML", "FP", "FN", "IDS", "frames/s"};

/// Sequences of the paper's benchmarks that were filmed by a moving camera.
const std::vector<std::string> moving_cameras{"ETH-Sunnyday",   "ETH-Bahnhof",    "ADL-Rundle-6",   "ADL-Rundle-8",
                                              "ETH-Pedcross2",  "KITTI-13",       "KITTI-17",       "Venice-2",
                                              "MOT17-05-FRCNN", "MOT17-10-FRCNN", "MOT17-11-FRCNN", "MOT17-13-FRCNN"};

struct Video {
  tracking::Detections detections;
  tracking::Labels truth;

  [[nodiscard]] const std::string& name() const { return detections.info.name; }
  [[nodiscard]] bool moving() const { return std::ranges::find(moving_cameras, name()) != moving_cameras.end(); }
};

std::vector<Video> read_videos(const Settings& settings) {
  std::vector<std::filesystem::path> folders;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(settings.mot_folder, failure)) {
    if (std::filesystem::exists(entry.path() / "det" / "det.txt") &&
        std::filesystem::exists(entry.path() / "gt" / "gt.txt")) {
      folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  if (folders.empty()) {
    throw BadData(fmt::format("{}: no folder in it has both det/det.txt and gt/gt.txt", settings.mot_folder));
  }
  std::vector<Video> videos;
  for (const auto& folder : folders) {
    Video video{tracking::read_detections(folder.string()), {}};
    video.truth = tracking::read_labels((folder / "gt" / "gt.txt").string(), video.detections.info.length);
    videos.push_back(std::move(video));
  }
  if (settings.quick) {
    std::ranges::stable_sort(videos, {}, [](const Video& video) { return video.detections.frames.size(); });
    videos.resize(std::min<std::size_t>(videos.size(), 2));
  }
  return videos;
}

tracking::MotionModel model_of(const std::string& method, const Video& video, std::uint64_t seed) {
  if (method == "constant velocity") return tracking::MotionModel::constant_velocity();
  tracking::TrainOptions options;
  options.seed = seed + 1;
  if (method == "trained with true links") return tracking::trained_with_links(video.detections, video.truth, options);
  tracking::TrainState state((tracking::MotionModel()));
  if (method == trained) tracking::train(state, {video.detections}, options);
  return state.best;
}

/// Counts of a method on a video and the time that tracking took, training not counted.
struct Outcome {
  tracking::Counts counts;
  double seconds = 0;
};

Outcome run_method(const std::string& method, const Video& video, std::uint64_t seed) {
  tracking::TrackerOptions options;
  options.camera = method.starts_with("ROBOT") || method.starts_with("trained");
  const tracking::MotionModel model = method == "SORT" ? tracking::MotionModel() : model_of(method, video, seed);
  const auto begin = std::chrono::steady_clock::now();
  tracking::Labels results;
  results.frames =
      method == "SORT" ? tracking::track_by_sort(video.detections) : tracking::track(video.detections, model, options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return {tracking::evaluate(video.truth, results, tracking::benchmark_of(video.name(), video.truth)), taken.count()};
}

Measurements as_measurements(const std::string& sequence, double x, const std::string& method, const Outcome& outcome) {
  const tracking::Counts& counts = outcome.counts;
  const tracking::Scores scores = tracking::scores_of(counts);
  const std::vector<double> values{100 * scores.mota,
                                   100 * scores.motp,
                                   100 * scores.idf1,
                                   100 * scores.hota,
                                   double(counts.mostly_tracked),
                                   double(counts.mostly_lost),
                                   double(counts.false_positives),
                                   double(counts.misses),
                                   double(counts.switches),
                                   double(counts.frames) / std::max(outcome.seconds, 1e-9)};
  Measurements result;
  for (std::size_t k = 0; k < quantities.size(); ++k)
    result.push_back({sequence, x, 0, method, quantities[k], values[k]});
  return result;
}

// The table's last lines: counts added up over sequences, which is what the benchmarks do.
const std::string moving = "moving cameras", fixed = "fixed cameras", all_sequences = "all sequences";

Measurements measure(const Settings& settings) {
  const std::vector<Video> videos = read_videos(settings);
  std::vector<Outcome> outcomes(videos.size() * methods.size());
  std::vector<Task> tasks;
  for (std::size_t k = 0; k < outcomes.size(); ++k) {
    tasks.emplace_back([&, k] {
      const std::size_t video = k / methods.size();
      const std::string& method = methods[k % methods.size()];
      outcomes[k] = run_method(method, videos[video], settings.seed);
      return as_measurements(videos[video].name(), double(video), method, outcomes[k]);
    });
  }
  Measurements all = run_all(tasks, settings);
  for (const std::string& sum : {moving, fixed, all_sequences}) {
    for (std::size_t m = 0; m < methods.size(); ++m) {
      Outcome total;
      for (std::size_t video = 0; video < videos.size(); ++video) {
        if (sum != all_sequences && videos[video].moving() != (sum == moving)) continue;
        const Outcome& one = outcomes[video * methods.size() + m];
        total.counts += one.counts;
        total.seconds += one.seconds;
      }
      if (total.counts.frames == 0) continue;
      std::ranges::copy(as_measurements(sum, double(videos.size()), methods[m], total), std::back_inserter(all));
    }
  }
  return all;
}

double value_of(const Measurements& all, const std::string& sequence, const std::string& method,
                const std::string& quantity) {
  return mean([&] {
    std::vector<double> values;
    for (const Measurement& one : select(all, {sequence, method, quantity})) values.push_back(one.value);
    return values;
  }());
}

Listing table_of(const Measurements& all) {
  Listing table;
  table.head = {"sequence", "method"};
  table.head.insert(table.head.end(), quantities.begin(), quantities.end());
  for (const std::string& sequence : panels_of(all)) {
    for (const std::string& method : methods_of(select(all, {sequence, "", ""}))) {
      std::vector<std::string> row{sequence, method};
      for (std::size_t k = 0; k < quantities.size(); ++k) {
        row.push_back(fmt::format("{:.{}f}", value_of(all, sequence, method, quantities[k]), k < 4 ? 1 : 0));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Findings judge(const Measurements& all) {
  Findings findings;
  findings.table = table_of(all);
  const auto panels = panels_of(all);
  for (const auto& [sum, what] : {std::pair{moving, "with a moving camera"}, {fixed, "with a fixed camera"}}) {
    if (std::ranges::find(panels, sum) == panels.end()) continue;
    const auto at = [&, sum = sum](const std::string& method, const std::string& quantity) {
      return value_of(all, sum, method, quantity);
    };
    for (const std::string untrained : {"identity", "constant velocity"}) {
      const bool better = at(trained, "MOTA") > at(untrained, "MOTA") && at(trained, "IDF1") > at(untrained, "IDF1") &&
                          at(trained, "IDS") < at(untrained, "IDS");
      findings.claims.push_back(
          {fmt::format("Training without links raises MOTA and IDF1 and lowers IDS against the untrained model ({}, "
                       "sequences {}).",
                       untrained, what),
           better,
           fmt::format("MOTA {:.1f} against {:.1f}, IDF1 {:.1f} against {:.1f}, IDS {:.0f} against {:.0f}.",
                       at(trained, "MOTA"), at(untrained, "MOTA"), at(trained, "IDF1"), at(untrained, "IDF1"),
                       at(trained, "IDS"), at(untrained, "IDS"))});
    }
  }
  const auto total = [&](const std::string& method, const std::string& quantity) {
    return value_of(all, all_sequences, method, quantity);
  };
  findings.claims.push_back(
      {"The trained tracker has a higher MOTA than SORT.", total(trained, "MOTA") > total("SORT", "MOTA"),
       fmt::format("All sequences: {:.1f} against {:.1f}; IDF1 {:.1f} against {:.1f}.", total(trained, "MOTA"),
                   total("SORT", "MOTA"), total(trained, "IDF1"), total("SORT", "IDF1"))});
  return findings;
}

}  // namespace mot_parts

Experiment mot_experiment() {
  return {"mot", "Tracking on boxes: SORT, untrained models, the model trained without links, and the bound with them.",
          mot_parts::measure, mot_parts::judge};
}

}  // namespace unshuffle::app
