// Training a motion model from detections alone: no identities, no links between frames.
//
// In every frame the live tracks z_j, moved by the model f, and the detections y_i are two tables whose links are lost.
// With C_ij = ½ (|centre(f(z_j)) - centre(y_i)| / diagonal + 1 - IoU) the loss of a frame is <C, Γ*(C)>·min(n, m), the
// paper's robust objective, differentiated through Γ*. Tracks start and end as in the tracker: each round tracks the
// videos with the current model, and Adam then processes its frames in batches for some epochs. Objectives of different
// rounds are over different tracks, so progress is judged within a round.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/tracker.hpp"
#include "unshuffle/transport/marginal.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct TrainOptions {
  int epochs = 20;              ///< At most.
  int round = 5;                ///< Epochs at most before the videos are tracked again.
  int batch = 16;               ///< Frames per step.
  double learning_rate = 0.01;  ///< Of Adam.
  double epsilon = 0.02;        ///< Smoothing of the plan; costs are between 0 and 1.
  double unmatched = 0.2;       ///< Share of tracks and of detections that may stay unmatched; 0: none (plain ROBOT).
  int patience = 2;             ///< Epochs without improvement that end a round.
  double least_gain =
      1e-3;  ///< Relative fall of the objective that counts as an improvement. A round without one is the last.
  std::uint64_t seed = 1;  ///< Order of the frames, and the hidden weights.
  TrackerOptions tracker{};
};

/// Throws InvalidInput naming the option, its value and what was expected.
void validate(const TrainOptions& options);

/// One frame to learn from.
struct TrainFrame {
  std::vector<Prediction> tracks;
  std::vector<Box> detections;
  double diagonal = 1;
  int number = 0;              ///< Of the frame, from 1.
  std::vector<Index> links{};  ///< Detection of each track (-1: none) where the truth is known; else empty.
};

/// Loss of a frame and its gradient in the model's parameters.
struct FrameLoss {
  double value = 0;  ///< <C, Γ>·min(n, m).
  double pairs = 0;  ///< min(n, m).
  Vector gradient;
};
[[nodiscard]] FrameLoss frame_loss(const TrainFrame& frame, const MotionModel& model, const TrainOptions& options);

/// The value alone, which is cheaper.
[[nodiscard]] double frame_objective(const TrainFrame& frame, const MotionModel& model, const TrainOptions& options);

/// Everything needed to resume training, bit for bit.
struct TrainState {
  explicit TrainState(MotionModel start);

  MotionModel model;
  Vector first_moment, second_moment;
  int steps = 0;
  std::vector<double> objectives;  ///< Mean loss per pair of every epoch so far.
  MotionModel tracked;             ///< What the videos of this round were tracked with.
  MotionModel best;                ///< After the epoch of this round with the least objective.
  double best_objective;
  int round_epochs = 0;
  int epochs_since_gain = 0;
  bool settled = false;  ///< The last round brought no improvement.
  [[nodiscard]] int epochs() const { return static_cast<int>(objectives.size()); }
};

/// Called after every epoch; returns false to stop.
using TrainWatch = std::function<bool(const TrainState&)>;

[[nodiscard]] bool finished(const TrainState& state, const TrainOptions& options);

/// Trains to the end. The result does not depend on the number of threads.
void train(TrainState& state, const std::vector<Detections>& videos, const TrainOptions& options,
           const TrainWatch& watch = {});

/// The frames of a video as the tracker processes them under this model.
[[nodiscard]] std::vector<TrainFrame> frames_of(const Detections& video, const MotionModel& model,
                                                const TrackerOptions& options);

/// One epoch over given frames in a seeded order; what `train` repeats.
void train_epoch(TrainState& state, const std::vector<TrainFrame>& frames, const TrainOptions& options);

/// The linear model fitted to the same frames with links from the ground truth, which shows what losing the links
/// costs.
[[nodiscard]] MotionModel trained_with_links(const Detections& video, const Labels& truth, const TrainOptions& options);

}  // namespace tracking
}  // namespace unshuffle
