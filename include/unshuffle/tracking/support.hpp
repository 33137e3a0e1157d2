// Which terms of a motion model, and whether the camera's motion, the frames of a video support.
//
// A term that helps on the videos a model was trained on may hurt on another one. So each is tried on frames that did
// not train it: the video is tracked with and without the term, and the robust objective of training, which needs no
// labels, is compared frame by frame, one frame ahead and five ahead (detections are hidden in between, as when a track
// is lost). A term is used if both are lower by more than chance explains (the camera: the first, and the second
// no higher); else the model falls back.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/train.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

enum class CameraUse { off, tried, on };

/// What is tried: the terms in which `model` differs from `fallback`, after the camera if it may be used.
struct Candidate {
  MotionModel fallback = MotionModel::constant_velocity();
  MotionModel model = MotionModel::constant_velocity();
  CameraUse camera = CameraUse::tried;
  int first_frame = 1;  ///< Earlier frames have trained the model.
};

/// How one term fared.
struct TermTrial {
  std::string term;    ///< camera, steps, place, or model for one with hidden units.
  double without = 0;  ///< Objective per detection, one and five frames ahead added up.
  double with = 0;
  double one_ahead = 0;  ///< Change of the objective in standard errors; negative: lower with the term.
  double five_ahead = 0;
  bool used = false;
};

struct Supported {
  MotionModel model;
  bool camera = false;
  std::vector<TermTrial> trials;
};

[[nodiscard]] Supported supported_terms(const Detections& video, const Candidate& candidate,
                                        const TrainOptions& options);

}  // namespace tracking
}  // namespace unshuffle
