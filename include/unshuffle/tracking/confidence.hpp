// How far the score of a detection can be trusted, learnt without labels.
//
// Scores have no common scale: one detector gives shares from 0 to 1, another numbers up to 120, a third always 1. But
// whoever stands in one frame mostly stands in the next one too, and false detections flicker. So the trust in a score
// is the share of detections with that score that a neighbouring frame confirms, made monotone in the score by isotonic
// regression, and divided by the share of the highest scores: where everything moves fast or detectors miss much, even
// the best are confirmed less often.
#pragma once

#include <utility>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

class Confidence {
 public:
  /// From all frames of a video.
  [[nodiscard]] static Confidence of(const std::vector<std::vector<Detection>>& frames);

  /// The next frame. Its detections confirm those of the frame before, and are confirmed by them.
  void add(const std::vector<Detection>& frame);

  /// Trust in a detection with this score, from 0 to 1. It is 1 while nothing is known.
  [[nodiscard]] double operator()(double score) const;

  /// The least score that is trusted this much; infinite when none is.
  [[nodiscard]] double least_score(double trust) const;

 private:
  struct Step {
    double score;  ///< From here on,
    double trust;  ///< up to the next step.
  };

  void fit();

  std::vector<Detection> last_;
  bool begun_ = false;
  std::vector<std::pair<double, bool>> seen_;  ///< Score, and whether the neighbouring frame confirmed it.
  std::vector<Step> steps_;
  std::size_t fitted_ = 0;  ///< How many of `seen_` the steps are from.
};

}  // namespace tracking
}  // namespace unshuffle
