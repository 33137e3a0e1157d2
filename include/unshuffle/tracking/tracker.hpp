// A tracker, frame by frame: predict, estimate the camera's motion, associate, start and end tracks.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/camera.hpp"
#include "unshuffle/tracking/confidence.hpp"
#include "unshuffle/tracking/motion.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

enum class Association {
  assignment,  ///< One-to-one pairs of least total cost.
  plan,        ///< Pairs that are likeliest on both sides in the robust transport plan.
};

/// How far a detection must be trusted (see `Confidence`), from 0 to 1. Chosen by docs/results/tracking.md.
struct TrustOptions {
  double birth = 0.75;  ///< To start a track.
  double match = 0.75;  ///< To be matched first, and to unconfirmed tracks; those below continue confirmed ones only.
  double least = 0.6;   ///< To be used at all.
};

/// How boxes that an appearance model finds are used.
struct AppearanceOptions {
  double share = 1;             ///< Of its box in the prediction; the motion model's has the rest.
  double survival_score = 0.5;  ///< A confirmed track without a detection lives on where it is found this surely,
  int longest_survival = 10;    ///< for at most so many frames.
};

struct TrackerOptions {
  double least_overlap = 0.4;     ///< IoU of prediction and detection below which they are never matched.
  double recovery_overlap = 0.4;  ///< The same for tracks that were lost,
  double widening = 0.005;        ///< less this for every frame since.
  int birth_wait = 3;             ///< Consecutive frames a detection must be seen in before it is a track.
  double birth_overlap = 0.3;     ///< A detection overlapping an active track by this much starts no track.
  int longest_absence = 45;       ///< Frames a lost track is kept for.
  double suppress_overlap = 0.7;  ///< Of two active tracks overlapping by this much, the younger one ends.
  int longest_gap = 20;           ///< Gaps of recovered tracks up to this many frames are interpolated linearly.
  double smoothing = 0.1;         ///< Weight of the newest displacement in the smoothed one.
  double least_confidence = -std::numeric_limits<double>::infinity();  ///< Scores below it are not used.
  TrustOptions trust{};
  Association association = Association::assignment;
  bool camera = true;  ///< Estimate the camera's motion in every frame.
  CameraOptions camera_options{};
  AppearanceOptions appearance{};
};

/// Throws InvalidInput naming the option, its value and what was expected.
void validate(const TrackerOptions& options);

/// The motion model's input for a live track in one frame, kept for training.
struct Prediction {
  Box from;  ///< The box before the motion model moved it.
  MotionInput input;
  Eigen::Vector2d camera = Eigen::Vector2d::Zero();  ///< The camera's shift at its place, in pixels.
};

/// A live track whose place in the frame before is known.
struct Sighting {
  int first_frame = 0;
  Box first;  ///< In its first frame.
  Box last;   ///< In the frame before.
};

struct Found {
  Box box;
  double score = 0;  ///< How sure the model is, from 0 to 1.
};

/// A model that uses pictures.
class Appearance {
 public:
  virtual ~Appearance() = default;
  /// Where the tracks are in this frame, one box each.
  virtual std::vector<Found> find(int frame, const std::vector<Sighting>& sightings) = 0;
};

class Tracker {
 public:
  /// With an appearance model the motion model moves only those tracks that were not seen in the frame before.
  Tracker(MotionModel model, Image image, TrackerOptions options = {}, std::shared_ptr<Appearance> appearance = {});

  /// From now on scores are trusted as far as this says. Otherwise the frames so far say it.
  void set_confidence(Confidence confidence);

  /// Processes the next frame. Returns the boxes of confirmed tracks; ids count from 1.
  std::vector<LabelledBox> step(const std::vector<Detection>& detections);

  /// All frames so far: as returned by `step`, with the first boxes of each track and the gaps of recovered ones filled
  /// in, and without boxes after the last detection of a track.
  [[nodiscard]] std::vector<std::vector<LabelledBox>> results() const;

  /// Of the last step, one per live track that was seen not long ago.
  [[nodiscard]] const std::vector<Prediction>& predictions() const { return predictions_; }
  [[nodiscard]] const CameraMotion& camera() const { return camera_; }

 private:
  struct Track {
    long id = 0;  ///< 0: not confirmed yet.
    TrackState state;
    Box anchor;  ///< Last detection, carried along by the camera only.
    int detections = 0;
    int absence = 0;     ///< Frames since the last box.
    int undetected = 0;  ///< How many of the last boxes are found by the appearance model alone.
    double found = 0;    ///< Score of the box that it found in this frame.
    std::vector<std::pair<int, Box>> history;
    [[nodiscard]] bool certain() const { return id > 0; }
  };

  void predict();
  void look();
  /// Detections a stage of matching may use.
  struct Stage {
    double least_trust;
    double below = std::numeric_limits<double>::infinity();
  };

  [[nodiscard]] std::vector<Detection> trusted(const std::vector<Detection>& detections);
  void follow_camera(const std::vector<Detection>& detections);
  void associate(const std::vector<Detection>& detections);
  void match(const std::vector<std::size_t>& tracks, const std::vector<Detection>& detections, const Stage& stage);
  [[nodiscard]] double gate_of(const Track& track) const;
  void observe(Track& track, const Detection& detection);
  void keep_found();
  void begin_tracks(const std::vector<Detection>& detections);
  void suppress();
  void end_tracks();
  /// Ends the tracks marked.
  void retire(const std::vector<char>& over);

  MotionModel model_;
  Image image_;
  TrackerOptions options_;
  std::shared_ptr<Appearance> appearance_;
  std::vector<Track> tracks_;
  std::vector<Track> ended_;  ///< Confirmed ones only.
  std::vector<Prediction> predictions_;
  std::vector<char> taken_;
  CameraMotion camera_;
  Confidence confidence_;
  bool confidence_given_ = false;
  long last_id_ = 0;
  int frame_ = 0;
};

/// A whole sequence at once.
[[nodiscard]] std::vector<std::vector<LabelledBox>> track(const Detections& detections, const MotionModel& model,
                                                          const TrackerOptions& options,
                                                          std::shared_ptr<Appearance> appearance = {});

}  // namespace tracking
}  // namespace unshuffle
