// The box cost, the motion model, the camera and the training, against finite differences and synthetic videos.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <random>

#include "support/image.hpp"
#include "tracking/box_cost.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tracking/model_file.hpp"
#include "unshuffle/tracking/train.hpp"

namespace unshuffle::tracking {
namespace {

struct Draw {
  std::mt19937_64 engine;
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine); }
  double normal(double sd) { return std::normal_distribution<double>(0, sd)(engine); }
  Box box() { return {uniform(0, 500), uniform(0, 300), uniform(20, 60), uniform(50, 150)}; }
};

/// People walking at constant speed under a camera that swings, detected with jitter; some frames miss some people.
Detections walk(int frames, int people, double swing, double missed, std::uint64_t seed) {
  Draw draw{std::mt19937_64(seed)};
  struct Person {
    Box box;
    double dx, dy;
  };
  std::vector<Person> all;
  for (int k = 0; k < people; ++k) {
    all.push_back(
        {{80.0 + 420.0 * k / people, draw.uniform(100, 250), 36, 90}, draw.uniform(-4, 4), draw.uniform(-1, 1)});
  }
  Detections video{.info = {.name = "walk", .length = frames, .width = image.width, .height = image.height},
                   .frames = {},
                   .notes = {}};
  for (int frame = 0; frame < frames; ++frame) {
    const double shift = draw.normal(swing);
    video.frames.emplace_back();
    for (Person& person : all) {
      person.box.left += person.dx + shift;
      person.box.top += person.dy;
      if (person.box.left < 0 || person.box.left > 600) person.dx = -person.dx;
      if (draw.uniform(0, 1) < missed) continue;
      Box seen = person.box;
      seen.left += draw.normal(1.5);
      seen.top += draw.normal(1.5);
      video.frames.back().push_back({seen, 1});
    }
  }
  return video;
}

double& side(Box& box, int k) { return k == 0 ? box.left : k == 1 ? box.top : k == 2 ? box.width : box.height; }

TEST(BoxCost, lies_between_zero_and_one_and_is_zero_for_equal_boxes) {
  Draw draw{std::mt19937_64(1)};
  for (int trial = 0; trial < 200; ++trial) {
    const Box a = draw.box(), b = draw.box();
    EXPECT_GE(box_cost(a, b, image.diagonal()), 0);
    EXPECT_LE(box_cost(a, b, image.diagonal()), 1);
    EXPECT_NEAR(box_cost(a, a, image.diagonal()), 0, 1e-12);
  }
}

TEST(BoxCost, slope_agrees_with_finite_differences) {
  Draw draw{std::mt19937_64(2)};
  int overlapping = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Box detected = draw.box();
    Box predicted = detected;
    for (int k = 0; k < 4; ++k) side(predicted, k) += draw.uniform(-25, 25) * (k < 2 ? 1 : 0.5);
    overlapping += overlap(predicted, detected) > 0 ? 1 : 0;
    const Eigen::Vector4d slope = box_cost_slope(predicted, detected, image.diagonal());
    for (int k = 0; k < 4; ++k) {
      constexpr double step = 1e-5;
      Box up = predicted, down = predicted;
      side(up, k) += step;
      side(down, k) -= step;
      const double numeric =
          (box_cost(up, detected, image.diagonal()) - box_cost(down, detected, image.diagonal())) / (2 * step);
      EXPECT_NEAR(slope(k), numeric, 1e-7);
    }
  }
  EXPECT_GT(overlapping, 200);
}

TEST(MotionModel, zero_parameters_leave_boxes_where_they_are) {
  const TrackState track{.box = {10, 20, 30, 40}, .last = {1, 1, 0.1}, .smooth = {1, 1, 0.1}};
  EXPECT_EQ(MotionModel(4).predict(motion_input(track, image)), Motion::Zero().eval());
}

TEST(MotionModel, constant_velocity_goes_on_by_the_smoothed_step) {
  const TrackState track{.box = {10, 20, 30, 40}, .last = {9, 9, 9}, .smooth = {0.25, -0.5, 0}};
  const Box next = moved(track.box, MotionModel::constant_velocity().predict(motion_input(track, image)));
  EXPECT_NEAR(next.left, 20, 1e-12);
  EXPECT_NEAR(next.top, 0, 1e-12);
  EXPECT_NEAR(next.width, 30, 1e-12);
}

TEST(MotionModel, gradient_agrees_with_finite_differences) {
  MotionModel model(5);
  Draw draw{std::mt19937_64(3)};
  Vector values(model.size());
  for (double& value : values) value = draw.normal(0.2);
  MotionInput input;
  for (double& value : input) value = draw.normal(0.5);
  const Motion slope(0.3, -0.7, 0.2);
  model.set_values(values);
  Vector gradient = Vector::Zero(model.size());
  model.add_gradient(input, slope, gradient);
  for (Index k = 0; k < values.size(); ++k) {
    constexpr double step = 1e-6;
    Vector up = values, down = values;
    up(k) += step;
    down(k) -= step;
    MotionModel high(5), low(5);
    high.set_values(up);
    low.set_values(down);
    EXPECT_NEAR(gradient(k), slope.dot(high.predict(input) - low.predict(input)) / (2 * step), 1e-8);
  }
}

TEST(FrameLoss, gradient_through_the_plan_agrees_with_finite_differences) {
  Draw draw{std::mt19937_64(4)};
  TrainOptions options;
  for (const double unmatched : {0.0, 0.2}) {
    options.unmatched = unmatched;
    options.epsilon = 0.1;
    TrainFrame frame;
    frame.diagonal = image.diagonal();
    for (int k = 0; k < 4; ++k) {
      Prediction track{.from = draw.box(), .input = MotionInput::Zero(), .camera = {draw.normal(3), draw.normal(3)}};
      for (double& value : track.input) value = draw.normal(0.4);
      frame.tracks.push_back(track);
      Box seen = track.from;
      seen.left += draw.normal(8);
      seen.top += draw.normal(8);
      frame.detections.push_back(seen);
    }
    frame.detections.push_back(draw.box());
    MotionModel model(2);
    Vector values(model.size());
    for (double& value : values) value = draw.normal(0.02);
    model.set_values(values);
    const FrameLoss loss = frame_loss(frame, model, options);
    EXPECT_EQ(loss.pairs, 4);
    for (Index k = 0; k < values.size(); k += 3) {
      constexpr double step = 1e-4;
      MotionModel high(2), low(2);
      Vector up = values, down = values;
      up(k) += step;
      down(k) -= step;
      high.set_values(up);
      low.set_values(down);
      const double numeric =
          (frame_loss(frame, high, options).value - frame_loss(frame, low, options).value) / (2 * step);
      EXPECT_NEAR(loss.gradient(k), numeric, 2e-4 * (1 + std::abs(numeric))) << "unmatched " << unmatched;
    }
  }
}

TEST(FrameLoss, frames_without_tracks_or_detections_teach_nothing) {
  TrainFrame frame;
  frame.detections.push_back({0, 0, 10, 10});
  EXPECT_EQ(frame_loss(frame, MotionModel(), {}).pairs, 0);
  EXPECT_EQ(frame_loss(frame, MotionModel(), {}).gradient.norm(), 0);
}

/// Boxes, and the same boxes under a camera shift, some replaced by boxes elsewhere.
std::pair<std::vector<Box>, std::vector<Box>> shifted(int count, double dx, double dy, int wrong, std::uint64_t seed) {
  Draw draw{std::mt19937_64(seed)};
  std::vector<Box> before, after;
  for (int k = 0; k < count; ++k) {
    before.push_back({20.0 + 560.0 * k / count, draw.uniform(100, 250), 40, 100});
    after.push_back(before.back());
    after.back().left += dx + draw.normal(0.5);
    after.back().top += dy + draw.normal(0.5);
    if (k < wrong) after.back() = draw.box();
  }
  std::reverse(after.begin(), after.end());
  return {before, after};
}

TEST(Camera, finds_the_shift_of_many_boxes_without_links_and_with_strangers) {
  const auto [before, after] = shifted(12, 14, -6, 3, 7);
  const CameraMotion found = estimate_camera(before, after, image, {}, {});
  const Box moved_box = found.apply({300, 200, 40, 100}, image);
  EXPECT_NEAR(moved_box.left, 314, 2);
  EXPECT_NEAR(moved_box.top, 194, 2);
}

TEST(Camera, few_boxes_move_it_less_than_many) {
  const auto share = [](int count) {
    const auto [before, after] = shifted(count, 10, 0, 0, 8);
    return (estimate_camera(before, after, image, {}, {}).apply({300, 200, 40, 100}, image).left - 300) / 10;
  };
  EXPECT_LT(share(1), 0.75);
  EXPECT_GT(share(1), 0.2);
  EXPECT_GT(share(12), 0.85);
}

TEST(Camera, without_boxes_it_stays_as_expected) {
  CameraMotion expected;
  expected.field(0, 0) = 0.01;
  EXPECT_EQ(estimate_camera({}, {{0, 0, 1, 1}}, image, expected, {}).field, expected.field);
  EXPECT_EQ(estimate_camera({{0, 0, 1, 1}}, {}, image, expected, {}).field, expected.field);
}

TEST(Camera, the_ball_of_the_paper_gives_the_same_motion) {
  const auto [before, after] = shifted(8, 9, 4, 2, 9);
  CameraOptions ball;
  ball.marginals = transport::Ball{.spread = 0.4};
  const Box fast = estimate_camera(before, after, image, {}, {}).apply({300, 200, 40, 100}, image);
  const Box slow = estimate_camera(before, after, image, {}, ball).apply({300, 200, 40, 100}, image);
  EXPECT_NEAR(fast.left, slow.left, 1);
  EXPECT_NEAR(fast.top, slow.top, 1);
}

TEST(Camera, a_shift_of_more_than_a_box_without_overlap_is_out_of_reach) {
  const auto [before, after] = shifted(3, 150, 0, 0, 10);
  EXPECT_LT(estimate_camera(before, after, image, {}, {}).apply({300, 200, 40, 100}, image).left, 400);
}

TEST(Training, lowers_the_objective_and_learns_that_people_go_on_walking) {
  const Detections video = walk(80, 6, 0, 0.05, 11);
  TrainOptions options;
  options.epochs = 8;
  options.learning_rate = 0.03;
  options.tracker.camera = false;
  TrainState state((MotionModel()));
  train(state, {video}, options);
  EXPECT_LT(state.objectives.back(), state.objectives.front());
  const Eigen::Map<const Eigen::Matrix<double, 3, motion_inputs>> linear(state.best.values().data());
  EXPECT_GT(linear(0, 6), 0.3);  // Δx from the smoothed Δx.
}

TEST(Training, goes_on_from_a_checkpoint_bit_for_bit_and_for_any_number_of_threads) {
  const Detections video = walk(40, 5, 4, 0.1, 12);
  TrainOptions options;
  options.epochs = 6;
  options.round = 3;
  options.patience = 5;
  options.least_gain = 0;
  MotionModel start(3);
  start.draw_hidden_weights(options.seed);
  omp_set_num_threads(1);
  TrainState straight(start);
  train(straight, {video}, options);

  omp_set_num_threads(2);
  for (const int stop : {1, 3, 4}) {
    std::string saved;
    TrainState first(start);
    train(first, {video}, options, [&](const TrainState& now) {
      saved = checkpoint_json(now, "mark");
      return now.epochs() < stop;
    });
    TrainState again = state_from_json(saved, "checkpoint", "mark");
    EXPECT_EQ(again.epochs(), std::min(stop, straight.epochs()));
    train(again, {video}, options);
    EXPECT_EQ(again.model.values(), straight.model.values()) << "stopped after " << stop;
    EXPECT_EQ(again.best.values(), straight.best.values());
    EXPECT_EQ(again.objectives, straight.objectives);
  }
  omp_set_num_threads(omp_get_num_procs());
}

TEST(Training, a_checkpoint_of_other_options_is_refused) {
  const std::string saved = checkpoint_json(TrainState((MotionModel())), "these");
  EXPECT_THROW((void)state_from_json(saved, "file", "others"), BadData);
  const Detections video = walk(3, 2, 0, 0, 1);
  TrainOptions options, other;
  other.seed = 2;
  EXPECT_NE(fingerprint({video}, options, 0), fingerprint({video}, other, 0));
  other = options;
  other.epochs = 99;
  EXPECT_EQ(fingerprint({video}, options, 0), fingerprint({video}, other, 0));
}

TEST(Training, refuses_impossible_options) {
  TrainState state((MotionModel()));
  EXPECT_THROW(train(state, {}, {.epochs = 0}), InvalidInput);
  EXPECT_THROW(train(state, {}, {.learning_rate = -1}), InvalidInput);
  EXPECT_THROW(train(state, {}, {.unmatched = 1}), InvalidInput);
}

TEST(Training, a_video_without_detections_ends_at_once_and_changes_nothing) {
  Detections video = walk(5, 1, 0, 0, 1);
  for (auto& frame : video.frames) frame.clear();
  TrainState state((MotionModel()));
  train(state, {video}, {});
  EXPECT_EQ(state.best.values().norm(), 0);
  EXPECT_LE(state.epochs(), 5);
}

}  // namespace
}  // namespace unshuffle::tracking
