#include "unshuffle/tracking/sort.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <iterator>

#include "tracking/box_grid.hpp"
#include "tracking/pairing.hpp"
#include "tracking/require.hpp"

namespace unshuffle::tracking {
namespace {

using Vector4 = Eigen::Vector4d;
using Vector7 = Eigen::Matrix<double, 7, 1>;
using Matrix7 = Eigen::Matrix<double, 7, 7>;

Vector4 measured(const Box& box) { return {box.center_x(), box.center_y(), box.area(), box.width / box.height}; }

Box box_of(const Vector7& state) {
  const double width = std::sqrt(state(2) * state(3));
  return box_around(state(0), state(1), width, state(2) / width);
}

}  // namespace

void validate(const SortOptions& options) {
  require(options.least_overlap >= 0 && options.least_overlap <= 1, "least_overlap", options.least_overlap,
          "from 0 to 1");
  require(options.longest_absence >= 0, "longest_absence", options.longest_absence, "at least 0");
  require(options.least_hits >= 0, "least_hits", options.least_hits, "at least 0");
  require(!std::isnan(options.least_confidence), "least_confidence", options.least_confidence, "a number");
}

Sort::Sort(SortOptions options) : options_(options) { validate(options_); }

void Sort::predict(Track& track) {
  Matrix7 transition = Matrix7::Identity();
  transition.topRightCorner<3, 3>().diagonal().setOnes();
  static const Vector7 noise = (Vector7() << 1, 1, 1, 1, 0.01, 0.01, 1e-4).finished();
  if (track.mean(2) + track.mean(6) <= 0) track.mean(6) = 0;
  track.mean = transition * track.mean;
  track.covariance = (transition * track.covariance * transition.transpose()).eval();
  track.covariance.diagonal() += noise;
  if (track.absence > 0) track.streak = 0;
  ++track.absence;
}

// Kalman update with the covariance in Joseph's form (I - KH) P (I - KH)' + K R K', H picking the first four of the
// state.
void Sort::update(Track& track, const Box& box) {
  static const Vector4 noise{1, 1, 10, 10};
  const Eigen::Matrix<double, 7, 4> cross = track.covariance.leftCols<4>();
  Eigen::Matrix4d innovation = track.covariance.topLeftCorner<4, 4>();
  innovation.diagonal() += noise;
  const Eigen::Matrix<double, 7, 4> gain = cross * innovation.inverse();
  track.mean += gain * (measured(box) - track.mean.head<4>());
  Matrix7 keep = Matrix7::Identity();
  keep.leftCols<4>() -= gain;
  track.covariance = (keep * track.covariance * keep.transpose() + gain * noise.asDiagonal() * gain.transpose()).eval();
  track.absence = 0;
  ++track.streak;
}

std::vector<LabelledBox> Sort::step(const std::vector<Detection>& all) {
  ++frame_;
  std::vector<Detection> detections;
  std::copy_if(all.begin(), all.end(), std::back_inserter(detections),
               [&](const Detection& detection) { return detection.confidence >= options_.least_confidence; });
  for (Track& track : tracks_) predict(track);
  std::vector<Box> detected;
  for (const Detection& detection : detections) detected.push_back(detection.box);
  const BoxGrid grid(detected);
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    const Box box = box_of(tracks_[i].mean);
    for (const std::size_t j : grid.near(box)) {
      const double share = overlap(box, detected[j]);
      if (share > 0) edges.push_back({Index(i), Index(j), share});
    }
  }
  std::vector<char> taken(detections.size(), 0);
  for (const std::size_t at : heaviest_pairs(edges, Index(tracks_.size()), Index(detections.size()))) {
    if (edges[at].weight < options_.least_overlap) continue;
    update(tracks_[std::size_t(edges[at].row)], detections[std::size_t(edges[at].column)].box);
    taken[std::size_t(edges[at].column)] = 1;
  }
  static const Vector7 start_variance = (Vector7() << 10, 10, 10, 10, 1e4, 1e4, 1e4).finished();
  for (std::size_t j = 0; j < detections.size(); ++j) {
    if (taken[j] != 0) continue;
    Track track{.id = ++last_id_, .mean = State::Zero(), .covariance = start_variance.asDiagonal()};
    track.mean.head<4>() = measured(detections[j].box);
    tracks_.push_back(track);
  }
  std::vector<LabelledBox> shown;
  for (const Track& track : tracks_) {
    const bool ripe = track.streak >= options_.least_hits || frame_ <= options_.least_hits;
    if (track.absence < 1 && ripe) shown.push_back({.id = track.id, .box = box_of(track.mean)});
  }
  std::erase_if(tracks_, [&](const Track& track) { return track.absence > options_.longest_absence; });
  return shown;
}

std::vector<std::vector<LabelledBox>> track_by_sort(const Detections& detections, const SortOptions& options) {
  Sort sort(options);
  std::vector<std::vector<LabelledBox>> frames;
  for (const auto& frame : detections.frames) frames.push_back(sort.step(frame));
  return frames;
}

}  // namespace unshuffle::tracking
