// Motion models and unfinished training as JSON, exact to the last bit.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/train.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct SavedModel {
  MotionModel model;
  bool camera = true;                   ///< Whether to estimate the camera's motion in every frame.
  double objective = 0;                 ///< Of the last epoch, mean loss per pair.
  std::vector<std::string> trained_on;  ///< Names of sequences.
};

[[nodiscard]] std::string to_json(const SavedModel& saved);

/// Throws BadData naming `source` and the field that is missing or wrong.
[[nodiscard]] SavedModel model_from_json(const std::string& content, const std::string& source);

/// `identity`, `constant-velocity` (both without camera) or a file.
[[nodiscard]] SavedModel load_model(const std::string& name);

/// A checkpoint also stores the options and videos it belongs to, as text; they must match to resume.
[[nodiscard]] std::string checkpoint_json(const TrainState& state, const std::string& belongs_to);
[[nodiscard]] TrainState state_from_json(const std::string& content, const std::string& source,
                                         const std::string& belongs_to);

/// The options and videos that determine the outcome of training.
[[nodiscard]] std::string fingerprint(const std::vector<Detections>& videos, const TrainOptions& options, int hidden);

}  // namespace tracking
}  // namespace unshuffle
