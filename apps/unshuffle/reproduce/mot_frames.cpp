// Tracking on real frames: a pretrained single-object tracker f before and after learning from detections without
// links.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "reproduce/mot_videos.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/pixels/siamese.hpp"
#include "unshuffle/tracking/sort.hpp"

namespace unshuffle::app {
namespace mot_frames_parts {

const std::string sort = "SORT", standing = "box stays", pretrained = "f, pretrained";
const std::string paper = "f after ROBOT, the paper's settings", others = "f after ROBOT", own = "f after ROBOT on it",
                  linked = "f after true links";
const std::vector<std::string> methods{sort, standing, pretrained, paper, others, own, linked};
const std::string all_sequences = "all sequences";

/// So many of its frames as have a picture.
void cut_to_pictures(Video& video) {
  tracking::SequenceInfo& info = video.detections.info;
  int frames = 0;
  while (frames < info.length && std::filesystem::exists(tracking::picture_path(info, frames + 1))) ++frames;
  info.length = frames;
  video.detections.frames.resize(std::size_t(frames));
  video.truth.frames.resize(std::size_t(frames));
}

std::vector<Video> read_films(const Settings& settings) {
  Settings all = settings;
  all.quick = false;  // The shortest are those with the fewest pictures.
  std::vector<Video> videos = read_videos(all);
  for (Video& video : videos) cut_to_pictures(video);
  std::erase_if(videos, [](const Video& video) { return video.detections.info.length < 2; });
  if (settings.quick) {
    std::ranges::stable_sort(videos, {}, [](const Video& video) { return video.detections.info.length; });
    videos.resize(std::min<std::size_t>(videos.size(), 2));
  }
  if (videos.size() < 2) {
    throw BadData(
        fmt::format("{}: fewer than two of its sequences have frames in img1; one is scored by f trained on "
                    "the others",
                    settings.mot_folder));
  }
  return videos;
}

pixels::SiameseTrainOptions options_of(const std::string& method) {
  pixels::SiameseTrainOptions options;
  options.tracker.camera = false;  // Pictures show the camera's motion by themselves.
  if (method == paper) {
    options.epochs = options.batch = 1;
    options.learning_rate = 1e-5;
    options.links = {.epsilon = 1e-4, .rho = 1e-3};
    options.hold_back = 0;
    return options;
  }
  options.epochs = 3;
  options.learning_rate = 1e-4;
  options.patience = 1;
  return options;
}

/// Without labels, but for the bound.
std::unique_ptr<pixels::SiameseNetwork> network_for(const std::string& method, const std::vector<Video>& videos,
                                                    std::size_t at, const Settings& settings) {
  auto network = pixels::load_network(settings.mot_weights);
  if (method == pretrained) return network;
  pixels::SiameseTrainOptions options = options_of(method);
  std::vector<tracking::Detections> lessons;
  for (std::size_t k = 0; k < videos.size(); ++k) {
    if ((k == at) != (method == own)) continue;
    lessons.push_back(videos[k].detections);
    if (method == linked) options.truth.push_back(videos[k].truth);
  }
  pixels::SiameseCheckpoint state = pixels::untrained(*network, pixels::picture_files(), lessons, options);
  pixels::train(*network, state, pixels::picture_files(), lessons, options);
  // With the paper's settings no frame is held back, so there is nothing to choose by.
  return method == paper ? std::move(network) : pixels::parse_network(state.best, settings.mot_weights);
}

/// What f or nothing makes of a video.
struct Trial {
  Outcome outcome;
  pixels::Foresight foresight;
};

Trial tracked_by(pixels::SiameseNetwork& network, const Video& video) {
  const auto begin = std::chrono::steady_clock::now();
  pixels::Film film(pixels::picture_files(), video.detections.info);
  const tracking::TrackerOptions options = options_of(pretrained).tracker;
  tracking::Labels results;
  results.frames = tracking::track(video.detections, tracking::MotionModel::constant_velocity(), options,
                                   std::make_shared<pixels::SiameseEyes>(network, film));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return {scored(video, results, taken.count()),
          pixels::foresight(network, film, video.truth, video.detections.info.length)};
}

Trial tracked_by_sort(const Video& video) {
  const auto begin = std::chrono::steady_clock::now();
  tracking::Labels results;
  results.frames = tracking::track_by_sort(video.detections);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return {scored(video, results, taken.count()), {}};
}

using Trials = std::vector<std::pair<std::string, Trial>>;

Measurements as_measurements(const std::string& sequence, double x, const Trials& trials) {
  Measurements all;
  for (const auto& [method, trial] : trials) {
    const Measurement place{sequence, x, 0, method, "", 0};
    const Measurements scores = app::as_measurements(place, trial.outcome);
    all.insert(all.end(), scores.begin(), scores.end());
    const pixels::Foresight& seen = trial.foresight;
    if (seen.predictions == 0) continue;
    all.push_back({sequence, x, 0, method, "IoU", seen.overlap / seen.predictions});
    if (method == pretrained) all.push_back({sequence, x, 0, standing, "IoU", seen.standing / seen.predictions});
  }
  return all;
}

Measurements measure(const Settings& settings) {
  const std::vector<Video> videos = read_films(settings);
  Trials sums;
  Measurements all;
  double done = 0;
  for (std::size_t at = 0; at < videos.size(); ++at) {
    Trials trials;
    for (const std::string& method : methods) {
      if (method == standing) continue;
      trials.emplace_back(method, method == sort ? tracked_by_sort(videos[at])
                                                 : tracked_by(*network_for(method, videos, at, settings), videos[at]));
      if (settings.progress) {
        (void)settings.progress(++done, double(videos.size()) * double(methods.size() - 1));
      }
    }
    const Measurements here = as_measurements(videos[at].name(), double(at), trials);
    all.insert(all.end(), here.begin(), here.end());
    if (sums.empty()) {
      sums = trials;
      continue;
    }
    for (std::size_t k = 0; k < sums.size(); ++k) {
      sums[k].second.outcome += trials[k].second.outcome;
      sums[k].second.foresight += trials[k].second.foresight;
    }
  }
  const Measurements total = as_measurements(all_sequences, double(videos.size()), sums);
  all.insert(all.end(), total.begin(), total.end());
  return all;
}

Claim paper_claim(const Measurements& all, const std::string& method) {
  const auto at = [&](const std::string& which, const std::string& quantity) {
    return mean_of(all, {all_sequences, which, quantity});
  };
  const bool better = at(method, "MOTA") > at(pretrained, "MOTA") && at(method, "IDF1") > at(pretrained, "IDF1") &&
                      at(method, "IDS") < at(pretrained, "IDS");
  return {fmt::format("ROBOT-robust raises MOTA and IDF1 of the pretrained f and lowers IDS ({}).", method), better,
          fmt::format("MOTA {:.1f} against {:.1f}, IDF1 {:.1f} against {:.1f}, IDS {:.0f} against {:.0f}.",
                      at(method, "MOTA"), at(pretrained, "MOTA"), at(method, "IDF1"), at(pretrained, "IDF1"),
                      at(method, "IDS"), at(pretrained, "IDS"))};
}

Findings judge(const Measurements& all) {
  Findings findings;
  std::vector<std::string> quantities = tracking_quantities();
  quantities.emplace_back("IoU");
  findings.table = tracking_table(all, quantities);
  for (const std::string& method : {paper, others, own}) findings.claims.push_back(paper_claim(all, method));
  return findings;
}

}  // namespace mot_frames_parts

Experiment mot_frames_experiment() {
  return {"mot-frames", "Tracking on frames: a pretrained network, after learning from other videos or the same one.",
          mot_frames_parts::measure, mot_frames_parts::judge};
}

}  // namespace unshuffle::app
