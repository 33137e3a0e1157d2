// SORT (Bewley et al. 2016), for comparison: a constant-velocity Kalman filter per track and IoU assignment.
#pragma once

#include <Eigen/Core>
#include <limits>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct SortOptions {
  double least_overlap = 0.3;  ///< A track and a detection that overlap less are never matched.
  int longest_absence = 1;     ///< Frames a track may go without a detection before it ends.
  int least_hits = 3;          ///< Detections in a row before a track is shown; waived in the first frames.
  double least_confidence = -std::numeric_limits<double>::infinity();  ///< Detections below it are not used.
};

/// Throws InvalidInput naming the option, its value and what was expected.
void validate(const SortOptions& options);

class Sort {
 public:
  explicit Sort(SortOptions options = {});

  /// Boxes of this frame; ids count from 1.
  std::vector<LabelledBox> step(const std::vector<Detection>& detections);

 private:
  using State = Eigen::Matrix<double, 7, 1>;  ///< centre x, centre y, area, width/height and the first three's change.

  struct Track {
    long id;
    State mean;
    Eigen::Matrix<double, 7, 7> covariance;
    int absence = 0;  ///< Frames since the last detection.
    int streak = 0;   ///< Detections in a row, the first one not counted.
  };

  static void predict(Track& track);
  static void update(Track& track, const Box& box);

  SortOptions options_;
  std::vector<Track> tracks_;
  long last_id_ = 0;
  int frame_ = 0;
};

/// A whole sequence at once.
[[nodiscard]] std::vector<std::vector<LabelledBox>> track_by_sort(const Detections& detections,
                                                                  const SortOptions& options = {});

}  // namespace tracking
}  // namespace unshuffle
