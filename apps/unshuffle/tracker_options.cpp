#include "tracker_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/text.hpp"
#include "say.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::app {

namespace {

void add_trust_options(CLI::App& command, tracking::TrackerOptions& options) {
  command
      .add_option("--birth-trust", options.trust.birth,
                  "How far a detection must be trusted to start a track: how often neighbouring frames confirm its "
                  "score, from 0 to 1.")
      ->capture_default_str();
  command
      .add_option("--match-trust", options.trust.match,
                  "The same to be matched first; detections trusted less only continue confirmed tracks.")
      ->capture_default_str();
  command.add_option("--least-trust", options.trust.least, "The same to be used at all.")->capture_default_str();
  command.add_option("--min-confidence", options.least_confidence,
                     "Detections whose score is less are ignored; scores are the detector's own, not always from 0 to "
                     "1. Default: none.");
}

}  // namespace

void add_tracker_options(CLI::App& command, TrackerCommand& tracker) {
  tracking::TrackerOptions& options = tracker.options;
  command
      .add_option("SEQUENCE", tracker.sequences,
                  "MOTChallenge folders: det/det.txt and, for the image size and number of frames, seqinfo.ini.")
      ->required();
  tracker.least_overlap_given =
      command
          .add_option("--least-overlap", options.least_overlap,
                      "IoU of prediction and detection below which they are never matched (sort: 0.3).")
          ->capture_default_str();
  command.add_option("--recovery-overlap", options.recovery_overlap, "The same for tracks that were lost.")
      ->capture_default_str();
  command.add_option("--widening", options.widening, "By how much that falls with every frame since.")
      ->capture_default_str();
  tracker.birth_wait_given = command
                                 .add_option("--birth-wait", options.birth_wait,
                                             "Consecutive frames with a detection before it becomes a track; its "
                                             "earlier boxes are then filled in.")
                                 ->capture_default_str();
  command
      .add_option("--birth-overlap", options.birth_overlap,
                  "A detection overlapping an active track by more than this starts no track.")
      ->capture_default_str();
  tracker.death_given =
      command
          .add_option("--death", options.longest_absence, "Frames a track is kept for without a detection (sort: 1).")
          ->capture_default_str();
  command
      .add_option("--suppress-overlap", options.suppress_overlap,
                  "Of two active tracks overlapping by more than this, the younger one ends.")
      ->capture_default_str();
  command.add_option("--smoothing", options.smoothing, "Weight of the newest displacement in the smoothed one.")
      ->capture_default_str();
  add_trust_options(command, options);
  command
      .add_option("--associate", tracker.association,
                  "assignment: pairs of least total cost; plan: pairs likeliest in the robust transport plan.")
      ->check(CLI::IsMember({"assignment", "plan"}))
      ->capture_default_str();
  tracking::CameraOptions& camera = options.camera_options;
  command
      .add_option("--camera-shift", camera.shift_sd,
                  "Expected camera shift between frames in image diagonals; smaller: needs more boxes to follow.")
      ->capture_default_str();
  command.add_option("--camera-slope", camera.slope_sd, "Expected size of its part that varies over the image.")
      ->capture_default_str();
  command.add_option("--camera-persistence", camera.persistence, "Share of the last shift expected to persist.")
      ->capture_default_str();
}

void add_training_options(CLI::App& command, tracking::TrainOptions& options) {
  command.add_option("--epochs", options.epochs, "Maximum number of passes over the frames.")->capture_default_str();
  command.add_option("--round", options.round, "Maximum number of passes before the videos are tracked again.")
      ->capture_default_str();
  command.add_option("--batch", options.batch, "Frames per step.")->capture_default_str();
  command.add_option("--learning-rate", options.learning_rate, "Of Adam.")->capture_default_str();
  command.add_option("--epsilon", options.epsilon, "Smoothing of the plan; costs are between 0 and 1.")
      ->capture_default_str();
  command
      .add_option("--unmatched", options.unmatched,
                  "Share of tracks and of detections that may stay unmatched; 0: every one must match (plain ROBOT).")
      ->capture_default_str();
  command.add_option("--patience", options.patience, "Epochs without improvement that end a round.")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Same seed, same model.")->capture_default_str();
}

tracking::TrackerOptions to_tracker_options(const TrackerCommand& tracker) {
  tracking::TrackerOptions options = tracker.options;
  options.association = tracker.association == "plan" ? tracking::Association::plan : tracking::Association::assignment;
  tracking::validate(options);
  return options;
}

std::vector<tracking::Detections> load_videos(const std::vector<std::string>& folders, bool quiet) {
  std::vector<tracking::Detections> videos;
  std::map<std::string, std::string> folder_of;
  for (const std::string& folder : folders) {
    videos.push_back(tracking::read_detections(folder));
    const tracking::Detections& video = videos.back();
    const auto [first, fresh] = folder_of.emplace(file_name_for(video.info.name), folder);
    if (!fresh) {
      throw InvalidInput(fmt::format("{} and {} are both named {}", first->second, folder, video.info.name));
    }
    if (quiet) continue;
    for (const std::string& one : video.notes) note(one);
  }
  return videos;
}

std::string training_outcome(const tracking::TrainState& state) {
  const double first = state.objectives.front();
  const double last = state.objectives.back();
  std::string text = fmt::format("{} epochs, objective per pair {:.4f} -> {:.4f}", state.epochs(), first, last);
  if (last > first) return text + ", which is higher: training has not improved the predictions";
  return state.settled ? text : text + ", still falling";
}

void note_confidence(const tracking::Detections& video, double least) {
  if (!std::isfinite(least)) return;
  std::size_t all = 0;
  std::size_t ignored = 0;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -lowest;
  for (const auto& frame : video.frames) {
    for (const tracking::Detection& detection : frame) {
      ++all;
      if (detection.confidence < least) ++ignored;
      lowest = std::min(lowest, detection.confidence);
      highest = std::max(highest, detection.confidence);
    }
  }
  if (all == 0) return;
  note(fmt::format("{}: --min-confidence {} ignores {} of {} detections; scores are from {:.4g} to {:.4g}",
                   video.info.name, least, ignored, all, lowest, highest));
}

}  // namespace unshuffle::app
