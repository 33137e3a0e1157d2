// The part of track that predicts with a motion model: training on the video, choosing terms, tracking.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tracker_options.hpp"
#include "unshuffle/tracking/model_file.hpp"

namespace unshuffle::app {

struct MotionCommand {
  tracking::TrainOptions training;
  std::string model = "constant-velocity";
  std::string camera = "auto";
  std::string terms = "supported";
  bool adapt = false;
  bool quiet = false;
  bool verbose = false;
};

/// Boxes with identities, and the seconds that tracking took without training and trials.
struct Tracked {
  std::vector<std::vector<tracking::LabelledBox>> frames;
  double seconds = 0;
};

/// Calls it and measures the time.
[[nodiscard]] Tracked with_time(const std::function<std::vector<std::vector<tracking::LabelledBox>>()>& track);

[[nodiscard]] Tracked track_by_motion(const tracking::Detections& video, const tracking::SavedModel& saved,
                                      tracking::TrackerOptions options, const MotionCommand& command);

}  // namespace unshuffle::app
