// Multi-object tracking: SORT, and a tracker whose motion model is untrained, trained without links, or with them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "reproduce/mot_videos.hpp"
#include "unshuffle/tracking/sort.hpp"
#include "unshuffle/tracking/train.hpp"

namespace unshuffle::app {
namespace mot_parts {

const std::string trained = "ROBOT-trained + camera";
const std::vector<std::string> methods{"SORT", "identity", "constant velocity", trained, "trained with true links"};
/// Sequences of the paper's benchmarks that were filmed by a moving camera.
const std::vector<std::string> moving_cameras{"ETH-Sunnyday",   "ETH-Bahnhof",    "ADL-Rundle-6",   "ADL-Rundle-8",
                                              "ETH-Pedcross2",  "KITTI-13",       "KITTI-17",       "Venice-2",
                                              "MOT17-05-FRCNN", "MOT17-10-FRCNN", "MOT17-11-FRCNN", "MOT17-13-FRCNN"};

bool is_moving(const Video& video) { return std::ranges::find(moving_cameras, video.name()) != moving_cameras.end(); }

tracking::MotionModel model_of(const std::string& method, const Video& video, std::uint64_t seed) {
  if (method == "constant velocity") return tracking::MotionModel::constant_velocity();
  tracking::TrainOptions options;
  options.seed = seed + 1;
  if (method == "trained with true links") return tracking::trained_with_links(video.detections, video.truth, options);
  tracking::TrainState state((tracking::MotionModel()));
  if (method == trained) tracking::train(state, {video.detections}, options);
  return state.best;
}

Outcome run_method(const std::string& method, const Video& video, std::uint64_t seed) {
  tracking::TrackerOptions options;
  options.camera = method.starts_with("ROBOT") || method.starts_with("trained");
  const tracking::MotionModel model = method == "SORT" ? tracking::MotionModel() : model_of(method, video, seed);
  const auto begin = std::chrono::steady_clock::now();
  tracking::Labels results;
  results.frames =
      method == "SORT" ? tracking::track_by_sort(video.detections) : tracking::track(video.detections, model, options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return scored(video, results, taken.count());
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
      return as_measurements({videos[video].name(), double(video), 0, method, "", 0}, outcomes[k]);
    });
  }
  Measurements all = run_all(tasks, settings);
  for (const std::string& sum : {moving, fixed, all_sequences}) {
    for (std::size_t m = 0; m < methods.size(); ++m) {
      Outcome total;
      for (std::size_t video = 0; video < videos.size(); ++video) {
        if (sum != all_sequences && is_moving(videos[video]) != (sum == moving)) continue;
        total += outcomes[video * methods.size() + m];
      }
      if (total.counts.frames == 0) continue;
      std::ranges::copy(as_measurements({sum, double(videos.size()), 0, methods[m], "", 0}, total),
                        std::back_inserter(all));
    }
  }
  return all;
}

Findings judge(const Measurements& all) {
  Findings findings;
  findings.table = tracking_table(all, tracking_quantities());
  const auto panels = panels_of(all);
  for (const auto& [sum, what] : {std::pair{moving, "with a moving camera"}, {fixed, "with a fixed camera"}}) {
    if (std::ranges::find(panels, sum) == panels.end()) continue;
    const auto at = [&, sum = sum](const std::string& method, const std::string& quantity) {
      return mean_of(all, {sum, method, quantity});
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
    return mean_of(all, {all_sequences, method, quantity});
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
