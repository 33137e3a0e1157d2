// A tracker, frame by frame: predict, find the camera's motion, associate, give birth, let die.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "unshuffle/tracking/camera.hpp"
#include "unshuffle/tracking/motion.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle::tracking {

enum class Association {
  assignment,  ///< One-to-one pairs of least total cost.
  plan,        ///< Pairs that the robust transport plan makes the likeliest on both sides.
};

struct TrackerOptions {
  double least_overlap = 0.5;     ///< IoU of prediction and detection below which they are never matched.
  double recovery_overlap = 0.5;  ///< The same for tracks that were lost.
  int birth_wait = 3;             ///< Consecutive frames a detection must be seen in before it is a track.
  double birth_overlap = 0.3;     ///< A detection overlapping an active track by this much begins no track.
  int longest_absence = 30;       ///< Frames a lost track is kept for.
  double suppress_overlap = 0.7;  ///< Of two active tracks overlapping by this much, the younger one ends.
  int longest_gap = 15;           ///< Gaps of recovered tracks up to so many frames are filled by straight lines.
  double smoothing = 0.2;         ///< Weight of the newest displacement in the smoothed one.
  double least_confidence = -std::numeric_limits<double>::infinity();  ///< Detections below it are not used.
  Association association = Association::assignment;
  bool camera = true;  ///< Estimate the camera's motion in every frame.
  CameraOptions camera_options{};
};

/// Throws InvalidInput naming the option, its value and what was expected.
void validate(const TrackerOptions& options);

/// What the motion model saw of a live track in one frame, kept for training.
struct Prediction {
  Box from;  ///< The box before the motion model moved it.
  MotionInput input;
  Eigen::Vector2d camera = Eigen::Vector2d::Zero();  ///< The camera's shift at its place, in pixels.
};

class Tracker {
 public:
  Tracker(MotionModel model, Image image, TrackerOptions options = {});

  /// The next frame. Returns the boxes of tracks that are certain by now; ids count from 1.
  std::vector<LabelledBox> step(const std::vector<Detection>& detections);

  /// All frames so far: as returned by `step`, with the first boxes of each track and the gaps of recovered ones filled
  /// in.
  [[nodiscard]] std::vector<std::vector<LabelledBox>> results() const;

  /// Of the last step, one per live track that was seen not long ago.
  [[nodiscard]] const std::vector<Prediction>& predictions() const { return predictions_; }
  [[nodiscard]] const CameraMotion& camera() const { return camera_; }

 private:
  struct Track {
    long id = 0;  ///< 0: not certain yet.
    TrackState state;
    Box anchor;  ///< Last detection, carried along by the camera only.
    int detections = 0;
    int absence = 0;  ///< Frames since the last detection.
    std::vector<std::pair<int, Box>> history;
    [[nodiscard]] bool certain() const { return id > 0; }
  };

  void predict();
  void follow_camera(const std::vector<Detection>& detections);
  void associate(const std::vector<Detection>& detections);
  void match(const std::vector<std::size_t>& tracks, const std::vector<Detection>& detections, double least_overlap);
  void observe(Track& track, const Detection& detection);
  void begin_tracks(const std::vector<Detection>& detections);
  void suppress();
  void end_tracks();
  void retire(std::size_t at);

  MotionModel model_;
  Image image_;
  TrackerOptions options_;
  std::vector<Track> tracks_;
  std::vector<Track> ended_;  ///< Certain ones only.
  std::vector<Prediction> predictions_;
  std::vector<char> taken_;
  CameraMotion camera_;
  long last_id_ = 0;
  int frame_ = 0;
};

/// A whole sequence at once.
[[nodiscard]] std::vector<std::vector<LabelledBox>> track(const Detections& detections, const MotionModel& model,
                                                          const TrackerOptions& options);

}  // namespace unshuffle::tracking
