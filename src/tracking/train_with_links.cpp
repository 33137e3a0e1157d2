#include <limits>

#include "tracking/true_links.hpp"
#include "unshuffle/tracking/train.hpp"

namespace unshuffle::tracking {
namespace {

/// The ground-truth identity under a box, -1 where there is none.
long identity_under(const Box& box, const std::vector<LabelledBox>& truth) {
  double best = 0.5;
  long id = -1;
  for (const LabelledBox& entry : truth) {
    const double share = overlap(entry.box, box);
    if (share >= best) {
      best = share;
      id = entry.id;
    }
  }
  return id;
}

void link(TrainFrame& frame, const Labels& truth) {
  const auto at = static_cast<std::size_t>(frame.number) - 1;
  if (at == 0 || at >= truth.frames.size()) return;
  std::vector<Box> before;
  for (const Prediction& track : frame.tracks) before.push_back(track.from);
  frame.links = true_links(before, truth.frames[at - 1], frame.detections, truth.frames[at]);
}

}  // namespace

std::vector<Index> true_links(const std::vector<Box>& before, const std::vector<LabelledBox>& truth_before,
                              const std::vector<Box>& detections, const std::vector<LabelledBox>& truth) {
  std::vector<Index> links(before.size(), -1);
  for (std::size_t j = 0; j < before.size(); ++j) {
    const long id = identity_under(before[j], truth_before);
    for (std::size_t i = 0; i < detections.size() && id >= 0; ++i) {
      if (identity_under(detections[i], truth) == id) links[j] = static_cast<Index>(i);
    }
  }
  return links;
}

MotionModel trained_with_links(const Detections& video, const Labels& truth, const TrainOptions& options) {
  constexpr int rounds = 4;
  TrainState state((MotionModel()));
  for (int round = 0; round < rounds; ++round) {
    std::vector<TrainFrame> frames = frames_of(video, state.best, options.tracker);
    for (TrainFrame& frame : frames) link(frame, truth);
    std::erase_if(frames, [](const TrainFrame& frame) { return frame.links.empty(); });
    for (int epoch = 0; epoch < options.round; ++epoch) train_epoch(state, frames, options);
    state.best_objective = std::numeric_limits<double>::max();
  }
  return state.best;
}

}  // namespace unshuffle::tracking
