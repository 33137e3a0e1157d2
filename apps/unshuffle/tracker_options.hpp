// Options that track and train-tracker share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "unshuffle/tracking/train.hpp"

namespace unshuffle::app {

struct TrackerCommand {
  std::vector<std::string> sequences;
  tracking::TrackerOptions options;
  std::string association = "assignment";
  CLI::Option* least_overlap_given = nullptr;
  CLI::Option* birth_wait_given = nullptr;
  CLI::Option* death_given = nullptr;
};

void add_tracker_options(CLI::App& command, TrackerCommand& tracker);
void add_training_options(CLI::App& command, tracking::TrainOptions& options);

[[nodiscard]] tracking::TrackerOptions to_tracker_options(const TrackerCommand& tracker);

/// Reads the folders; reports on stderr what was excluded, unless quiet.
[[nodiscard]] std::vector<tracking::Detections> load_videos(const std::vector<std::string>& folders, bool quiet);

/// How many epochs, and the objective before and after.
[[nodiscard]] std::string training_outcome(const tracking::TrainState& state);

/// Reports on stderr how many detections have a lower score, as detectors do not agree on a scale.
void note_confidence(const tracking::Detections& video, double least);

}  // namespace unshuffle::app
