// Videos with ground truth, and what the experiments on tracking measure of them.
#pragma once

#include <string>
#include <vector>

#include "reproduce/summaries.hpp"
#include "unshuffle/tracking/metrics.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle::app {

struct Video {
  tracking::Detections detections;
  tracking::Labels truth;

  [[nodiscard]] const std::string& name() const { return detections.info.name; }
};

/// Of the folder --mot-data, by name; with --quick, the two shortest ones.
[[nodiscard]] std::vector<Video> read_videos(const Settings& settings);

/// Counts of a method on a video and the time that tracking took, training not counted.
struct Outcome {
  tracking::Counts counts;
  double seconds = 0;

  Outcome& operator+=(const Outcome& other);
};

[[nodiscard]] Outcome scored(const Video& video, const tracking::Labels& results, double seconds);

/// The columns of the paper's table, and HOTA and frames per second.
[[nodiscard]] const std::vector<std::string>& tracking_quantities();

/// One per quantity.
[[nodiscard]] Measurements as_measurements(const Measurement& place, const Outcome& outcome);

/// A row per sequence and method, of these quantities; the first four and any called IoU in decimals.
[[nodiscard]] Listing tracking_table(const Measurements& all, const std::vector<std::string>& quantities);

/// The mean over runs.
[[nodiscard]] double mean_of(const Measurements& all, const Which& which);

}  // namespace unshuffle::app
