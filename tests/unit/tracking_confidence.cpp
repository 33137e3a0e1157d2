// Trust in scores without labels, and what the tracker does with it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/random.hpp"
#include "unshuffle/tracking/support.hpp"
#include "unshuffle/tracking/tracker.hpp"

namespace unshuffle::tracking {
namespace {

constexpr double high_score = 50;
constexpr double low_score = 5;

Box standing_at(double left) { return {left, 100, 40, 100}; }

/// Two people with high scores in every frame, and a false detection with a low score somewhere else each time.
std::vector<std::vector<Detection>> flickering(int frames, double scale = 1) {
  RandomStream random(3, 0);
  std::vector<std::vector<Detection>> video;
  for (int frame = 0; frame < frames; ++frame) {
    video.push_back(
        {{standing_at(50 + 2.0 * frame), scale * high_score}, {standing_at(400), scale * (high_score + 1)}});
    video.back().push_back({{600 * random.uniform(), 300 + 100 * random.uniform(), 30, 60}, scale * low_score});
  }
  return video;
}

TEST(Confidence, trusts_everything_while_nothing_is_known) {
  Confidence confidence;
  EXPECT_EQ(confidence(-3), 1);
  confidence.add({{standing_at(10), 0.2}});
  EXPECT_EQ(confidence(0.2), 1);
}

TEST(Confidence, trusts_scores_that_neighbouring_frames_confirm_whatever_their_scale) {
  for (const double scale : {0.01, 1.0}) {
    const Confidence confidence = Confidence::of(flickering(60, scale));
    EXPECT_GT(confidence(scale * high_score), 0.95);
    EXPECT_LT(confidence(scale * low_score), 0.3);
    EXPECT_EQ(confidence.least_score(0.5), scale * high_score);
  }
}

TEST(Confidence, never_falls_with_the_score) {
  RandomStream random(5, 0);
  std::vector<std::vector<Detection>> video(200);
  for (auto& frame : video) {
    for (int k = 0; k < 5; ++k) {
      const double score = random.uniform();
      if (random.uniform() < score) frame.push_back({standing_at(100.0 * k), score});
    }
  }
  const Confidence confidence = Confidence::of(video);
  for (double score = 0; score < 1; score += 0.01) EXPECT_LE(confidence(score), confidence(score + 0.01));
}

TEST(Confidence, equal_scores_are_trusted_however_often_they_fail) {
  auto video = flickering(30);
  for (auto& frame : video) {
    for (Detection& detection : frame) detection.confidence = 1;
  }
  EXPECT_EQ(Confidence::of(video)(1), 1);
}

TEST(Confidence, the_frames_so_far_say_in_the_end_what_all_of_them_say) {
  const auto video = flickering(60);
  Confidence online;
  for (const auto& frame : video) online.add(frame);
  EXPECT_NEAR(online(low_score), Confidence::of(video)(low_score), 0.05);
}

std::set<long> ids_of_tracks(const std::vector<std::vector<Detection>>& video, const TrackerOptions& options) {
  Detections detections{{.name = "", .length = int(video.size()), .width = 640, .height = 480}, video, {}};
  std::set<long> ids;
  for (const auto& frame : track(detections, MotionModel::constant_velocity(), options)) {
    for (const LabelledBox& entry : frame) ids.insert(entry.id);
  }
  return ids;
}

TEST(Trust, a_false_detection_with_a_low_score_starts_no_track_though_it_stays_for_a_while) {
  auto video = flickering(60);
  for (std::size_t frame = 20; frame < 25; ++frame) video[frame].push_back({standing_at(250), low_score});
  TrackerOptions options;
  options.camera = false;
  EXPECT_EQ(ids_of_tracks(video, options).size(), 2U);
  options.trust = {.birth = 0, .match = 0, .least = 0};
  EXPECT_EQ(ids_of_tracks(video, options).size(), 3U);
}

TEST(Trust, a_track_goes_on_with_detections_that_could_not_start_one) {
  TrackerOptions options;
  options.camera = false;
  options.trust = {.birth = 0.9, .match = 0.9, .least = 0.1};
  Confidence confidence = Confidence::of(flickering(60));
  ASSERT_GT(confidence(low_score), 0.0);
  options.trust.least = confidence(low_score) / 2;
  Tracker tracker(MotionModel::constant_velocity(), {640, 480}, options);
  tracker.set_confidence(confidence);
  for (int frame = 0; frame < 5; ++frame) tracker.step({{standing_at(100), high_score}});
  EXPECT_EQ(tracker.step({{standing_at(101), low_score}}).size(), 1U);
  options.trust.least = 0.9;
  Tracker strict(MotionModel::constant_velocity(), {640, 480}, options);
  strict.set_confidence(confidence);
  for (int frame = 0; frame < 5; ++frame) strict.step({{standing_at(100), high_score}});
  EXPECT_TRUE(strict.step({{standing_at(101), low_score}}).empty());
}

TEST(Tracker, the_gate_of_a_lost_track_widens_with_time) {
  const auto id_after = [](int absence, double widening) {
    TrackerOptions options;
    options.camera = false;
    options.widening = widening;
    options.recovery_overlap = 0.4;
    Tracker tracker(MotionModel(), {640, 480}, options);
    for (int frame = 0; frame < 5; ++frame) tracker.step({{standing_at(100)}});
    for (int frame = 0; frame < absence; ++frame) tracker.step({});
    std::vector<LabelledBox> last;
    for (int frame = 0; frame < 4; ++frame) last = tracker.step({{standing_at(120)}});  // Overlap 1/3.
    return last.empty() ? 0 : last.front().id;
  };
  EXPECT_EQ(id_after(2, 0.005), 2);
  EXPECT_EQ(id_after(20, 0.005), 1);
  EXPECT_EQ(id_after(20, 0), 2);
}

/// Seven people who walk steadily, seen by a camera that jerks by so many pixels.
Detections walkers(double jerk) {
  RandomStream random(7, 0);
  Detections video{{.name = "walkers", .length = 120, .width = 1280, .height = 480}, {}, {}};
  for (int frame = 0; frame < video.info.length; ++frame) {
    const double pan = jerk * random.normal();
    video.frames.emplace_back();
    for (int k = 0; k < 7; ++k) {
      const double left = 100 + 150.0 * k + (k % 2 == 0 ? 1 : -1) * 0.5 * frame + pan;
      video.frames.back().push_back({{left + random.normal(), 100 + 30.0 * (k % 3) + random.normal(), 40, 100}});
    }
  }
  return video;
}

TEST(Support, the_camera_is_followed_only_where_it_moves) {
  EXPECT_TRUE(supported_terms(walkers(12), {}, {}).camera);
  EXPECT_FALSE(supported_terms(walkers(0), {}, {}).camera);
}

TEST(Support, a_model_that_predicts_worse_falls_back_and_one_that_predicts_better_is_used) {
  MotionModel wrong;
  Vector values = MotionModel::constant_velocity().values();
  values(0) = 0.1;  // A tenth of the height to the right in every frame, for everybody.
  wrong.set_values(values);
  const Detections video = walkers(0);
  const Supported kept = supported_terms(video, {.model = wrong, .camera = CameraUse::off}, {});
  EXPECT_EQ(kept.model.values(), MotionModel::constant_velocity().values());
  const Supported mended = supported_terms(
      video, {.fallback = wrong, .model = MotionModel::constant_velocity(), .camera = CameraUse::off}, {});
  EXPECT_EQ(mended.model.values(), MotionModel::constant_velocity().values());
  ASSERT_EQ(mended.trials.size(), 2U);
  EXPECT_TRUE(mended.trials.back().used);
}

}  // namespace
}  // namespace unshuffle::tracking
