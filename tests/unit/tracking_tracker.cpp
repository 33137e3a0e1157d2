// Births, deaths, recovery and the camera, on videos small enough to follow by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "support/image.hpp"
#include "tracking/box_grid.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tracking/tracker.hpp"

namespace unshuffle::tracking {
namespace {

TrackerOptions still() {
  TrackerOptions options;
  options.camera = false;
  return options;
}

std::vector<Detection> one(double left) { return {{.box = {left, 100, 40, 100}}}; }

std::vector<std::size_t> boxes_per_frame(const Tracker& tracker) {
  std::vector<std::size_t> counts;
  for (const auto& frame : tracker.results()) counts.push_back(frame.size());
  return counts;
}

TEST(BoxGrid, finds_every_box_that_overlaps_whatever_the_sizes) {
  std::mt19937_64 draw(1);
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(draw); };
  std::vector<Box> boxes(400);
  for (Box& box : boxes) box = {uniform(-500, 2000), uniform(-500, 2000), uniform(1, 50), uniform(1, 100)};
  for (std::size_t k = 0; k < 5; ++k) boxes[k].width = 3000;  // over many cells
  boxes[5] = {-1e300, 0, 1e301, 10};
  boxes[6] = {0, 0, 0, 0};
  boxes[7].left = std::numeric_limits<double>::quiet_NaN();
  boxes[8].width = std::numeric_limits<double>::infinity();
  const BoxGrid grid(boxes);
  std::size_t looked_at = 0;
  for (const Box& box : boxes) {
    const std::vector<std::size_t> near = grid.near(box);
    EXPECT_TRUE(std::is_sorted(near.begin(), near.end()));
    looked_at += near.size();
    for (std::size_t at = 0; at < boxes.size(); ++at)
      EXPECT_TRUE(overlap(box, boxes[at]) <= 0 || std::binary_search(near.begin(), near.end(), at)) << at;
  }
  EXPECT_LT(looked_at, boxes.size() * boxes.size() / 5);
}

TEST(Tracker, a_track_is_born_after_the_wait_and_its_first_boxes_are_filled_in) {
  Tracker tracker(MotionModel(), image, still());
  EXPECT_TRUE(tracker.step(one(100)).empty());
  EXPECT_TRUE(tracker.step(one(101)).empty());
  ASSERT_EQ(tracker.step(one(102)).size(), 1U);
  EXPECT_EQ(boxes_per_frame(tracker), (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_EQ(tracker.results()[0][0].id, 1);
  EXPECT_EQ(tracker.results()[0][0].box.left, 100);
}

TEST(Tracker, a_detection_seen_too_few_times_is_no_track) {
  Tracker tracker(MotionModel(), image, still());
  for (const bool seen : {true, true, false, true, true, false})
    tracker.step(seen ? one(100) : std::vector<Detection>{});
  for (const std::size_t boxes : boxes_per_frame(tracker)) EXPECT_EQ(boxes, 0U);
}

TEST(Tracker, a_lost_track_is_recovered_with_its_id_and_the_gap_is_a_straight_line) {
  for (const int longest_gap : {3, 2}) {
    TrackerOptions options = still();
    options.longest_gap = longest_gap;
    Tracker tracker(MotionModel::constant_velocity(), image, options);
    for (int frame = 0; frame < 12; ++frame) {
      const bool seen = frame < 5 || frame > 7;
      tracker.step(seen ? one(100 + 8.0 * frame) : std::vector<Detection>{});
    }
    const auto results = tracker.results();
    std::set<long> ids;
    for (const auto& frame : results) {
      for (const auto& entry : frame) ids.insert(entry.id);
    }
    EXPECT_EQ(ids.size(), 1U);
    if (longest_gap == 3) {
      ASSERT_EQ(results[6].size(), 1U);
      EXPECT_NEAR(results[6][0].box.left, 100 + 8.0 * 6, 1e-9);
    } else {
      EXPECT_TRUE(results[6].empty());
    }
  }
}

TEST(Tracker, a_standing_model_loses_who_walks_ever_faster_and_constant_velocity_does_not) {
  const auto kept = [](const MotionModel& model) {
    Tracker tracker(model, {2000, 480}, still());
    std::vector<LabelledBox> last;
    double left = 100;
    for (int frame = 0; frame < 40; ++frame) {
      left += 0.5 * frame;  // Up to half a box's width per frame.
      last = tracker.step(one(left));
    }
    return last.size() == 1 && last.front().id == 1;
  };
  EXPECT_TRUE(kept(MotionModel::constant_velocity()));
  EXPECT_FALSE(kept(MotionModel()));
}

TEST(Tracker, a_track_dies_after_its_longest_absence) {
  for (const int absence : {3, 4}) {
    TrackerOptions options = still();
    options.longest_absence = 3;
    Tracker tracker(MotionModel(), image, options);
    for (int frame = 0; frame < 4; ++frame) tracker.step(one(100));
    for (int frame = 0; frame < absence; ++frame) tracker.step({});
    std::vector<LabelledBox> last;
    for (int frame = 0; frame < 3; ++frame) last = tracker.step(one(100));
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(last[0].id, absence == 3 ? 1 : 2);
  }
}

TEST(Tracker, two_people_who_cross_keep_their_ids_by_their_velocity) {
  Tracker tracker(MotionModel::constant_velocity(), image, still());
  std::vector<LabelledBox> last;
  for (int frame = 0; frame < 25; ++frame) {
    last = tracker.step({{.box = {100 + 10.0 * frame, 100, 40, 100}}, {.box = {340 - 10.0 * frame, 130, 40, 100}}});
  }
  ASSERT_EQ(last.size(), 2U);
  for (const auto& entry : last) EXPECT_NEAR(entry.box.left, entry.id == 1 ? 340 : 100, 1e-9);
}

TEST(Tracker, of_two_active_tracks_on_one_spot_the_older_stays) {
  TrackerOptions options = still();
  options.suppress_overlap = 0.6;
  Tracker tracker(MotionModel(), image, options);
  std::vector<LabelledBox> last;
  for (int frame = 0; frame < 12; ++frame) {
    const double other = std::max(105.0, 200.0 - 9.0 * frame);
    last = tracker.step({{.box = {100, 100, 60, 100}}, {.box = {other, 100, 60, 100}}});
  }
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].id, 1);
}

TEST(Tracker, follows_a_camera_that_jumps_where_a_still_one_loses_everybody) {
  const auto shown = [](bool camera) {
    TrackerOptions options;
    options.camera = camera;
    options.least_overlap = options.recovery_overlap = 0.5;  // A jump leaves 0.43.
    options.widening = 0;
    Tracker tracker(MotionModel(), image, options);
    std::size_t boxes = 0;
    std::set<long> ids;
    double pan = 0;
    for (int frame = 0; frame < 40; ++frame) {
      if (frame > 5) pan += frame % 4 < 2 ? 16 : -16;
      std::vector<Detection> detections;
      for (int k = 0; k < 7; ++k) detections.push_back({.box = {40 + 80.0 * k + pan, 100 + 7.0 * (k % 3), 40, 100}});
      const auto found = tracker.step(detections);
      boxes += found.size();
      for (const auto& entry : found) ids.insert(entry.id);
    }
    return std::pair(boxes, ids.size());
  };
  EXPECT_EQ(shown(true), std::pair(std::size_t{7 * 38}, std::size_t{7}));
  EXPECT_LT(shown(false).first, std::size_t{7 * 30});
}

TEST(Tracker, the_robust_plan_associates_as_the_assignment_does_where_it_is_clear) {
  for (const Association association : {Association::assignment, Association::plan}) {
    TrackerOptions options = still();
    options.association = association;
    Tracker tracker(MotionModel(), image, options);
    std::vector<LabelledBox> last;
    for (int frame = 0; frame < 5; ++frame) {
      last = tracker.step({{.box = {100, 100, 40, 100}}, {.box = {300, 100, 40, 100}}});
    }
    EXPECT_EQ(last.size(), 2U);
  }
}

TEST(Tracker, empty_frames_and_weak_detections_give_nothing) {
  TrackerOptions options = still();
  options.least_confidence = 0.5;
  Tracker tracker(MotionModel(), image, options);
  for (int frame = 0; frame < 5; ++frame) {
    EXPECT_TRUE(tracker.step({{.box = {100, 100, 40, 100}, .confidence = 0.4}}).empty());
  }
  EXPECT_TRUE(tracker.step({}).empty());
  EXPECT_EQ(tracker.results().size(), 6U);
}

TEST(Tracker, refuses_impossible_options_by_name) {
  const auto message = [](TrackerOptions options) {
    try {
      Tracker(MotionModel(), image, options);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  TrackerOptions options;
  options.least_overlap = 1.5;
  EXPECT_EQ(message(options), "least_overlap = 1.5 must be from 0 to 1");
  options = {};
  options.birth_wait = 0;
  EXPECT_EQ(message(options), "birth_wait = 0 must be at least 1");
  options = {};
  options.camera_options.shift_sd = 0;
  EXPECT_EQ(message(options), "camera shift_sd = 0 must be > 0");
  EXPECT_THROW(Tracker(MotionModel(), {0, 10}), InvalidInput);
}

}  // namespace
}  // namespace unshuffle::tracking
