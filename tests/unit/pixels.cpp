// Crops, films and training on pictures, with a fake network and fake picture files: no component is needed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "support/complaint.hpp"
#include "unshuffle/core/component.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/pixels/siamese.hpp"

namespace unshuffle::pixels {
namespace {

namespace fs = std::filesystem;
using tracking::Box;

/// Blue grows to the right, green downwards, red is the same everywhere.
Picture slope(int width, int height) {
  Picture picture{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (const int value : {2 * x, 3 * y, 7}) picture.values.push_back(std::uint8_t(value));
    }
  }
  return picture;
}

float value_at(const Crop& crop, int channel, int x, int y) {
  return crop.values[std::size_t((channel * crop.side + y) * crop.side + x)];
}

TEST(Crops, sample_a_linear_picture_exactly) {
  // 20 pixels around (30, 20) at twice the resolution: crop pixel u lies at x = 20 + (u + ½)/2.
  const Crop result = crop(slope(64, 48), {25, 10, 10, 20}, 20, 40);
  for (const int u : {0, 13, 39}) {
    EXPECT_NEAR(value_at(result, 0, u, 5), 2 * (20 + (u + 0.5) / 2 - 0.5), 1e-3);
    EXPECT_NEAR(value_at(result, 1, 5, u), 3 * (10 + (u + 0.5) / 2 - 0.5), 1e-3);
    EXPECT_EQ(value_at(result, 2, u, u), 7);
  }
}

TEST(Crops, show_the_mean_colour_outside_the_picture) {
  const Picture picture = slope(64, 48);
  const Crop beyond = crop(picture, {1000, 1000, 10, 10}, 20, 8);
  for (const float value : std::vector(beyond.values.begin(), beyond.values.begin() + 64)) {
    EXPECT_NEAR(value, picture.mean()[0], 1e-4);
  }
  EXPECT_NEAR(picture.mean()[0], 63, 1e-9);
}

TEST(Crops, have_the_sides_of_siam_rpn) {
  EXPECT_EQ(target_crop(slope(64, 48), {10, 10, 10, 20}).values.size(), 3U * 127 * 127);
  EXPECT_EQ(search_crop(slope(64, 48), {10, 10, 10, 20}, siam_rpn_search_side).values.size(), 3U * 271 * 271);
  EXPECT_NEAR(context_of({0, 0, 40, 90}), std::sqrt(105.0 * 155.0), 1e-12);
}

/// Every picture is the same; which ones were asked for is remembered.
class FakeFiles : public PictureFiles {
 public:
  [[nodiscard]] Picture read(const std::string& path) const override {
    {
      const std::lock_guard alone(reading);
      reads.push_back(fs::path(path).filename().string());
    }
    return slope(size.first, size.second);
  }
  [[nodiscard]] std::unique_ptr<FrameSink> open(const std::string&, double) const override { return nullptr; }
  mutable std::mutex reading;  ///< Films read ahead.
  mutable std::vector<std::string> reads;
  std::pair<int, int> size{64, 48};
};

/// Moves every box by what it has learnt, which is one pixel more with every step.
class FakeNetwork : public SiameseNetwork {
 public:
  [[nodiscard]] std::string state_dictionary() const override { return ""; }
  void measure_statistics(const std::vector<Sight>& sights) override { measured += int(sights.size()); }
  [[nodiscard]] std::vector<tracking::Found> predict(const std::vector<Sight>& sights) override {
    std::vector<tracking::Found> found;
    for (const Sight& sight : sights) {
      found.push_back({sight.last, score});
      found.back().box.left += learnt;
    }
    return found;
  }
  [[nodiscard]] int search_side() const override { return 40; }
  void decode(Decoding) override {}
  Lesson learn(const std::vector<Sight>& sights, const Teaching& teaching) override {
    lessons.emplace_back(sights.size(), teaching.detections.size());
    links.push_back(teaching.known);
    return {predict(sights), 0.5};
  }
  Lesson judge(const std::vector<Sight>& sights, const Teaching&) override {
    judged_after.push_back(learnt);
    return {predict(sights), 0.25};
  }
  void step(double) override { learnt += 1; }
  [[nodiscard]] std::string checkpoint() const override { return ""; }
  void restore(const std::string&, const std::string&) override {}
  [[nodiscard]] std::int64_t parameter_count() const override { return 1; }

  double learnt = 0;
  double score = 0;
  int measured = 0;
  std::vector<std::pair<std::size_t, std::size_t>> lessons;  ///< Tracks and detections.
  std::vector<std::vector<Index>> links;                     ///< Those known of every lesson.
  std::vector<double> judged_after;                          ///< What was learnt when it was judged.
};

class Pictures : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("unshuffle_pixels_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (int frame = 1; frame <= 6; ++frame) std::ofstream(folder_ / ("00000" + std::to_string(frame) + ".jpg"));
    video_.info = {.name = "Walk",
                   .length = 6,
                   .frame_rate = 0,
                   .width = 64,
                   .height = 48,
                   .pictures = folder_.string(),
                   .picture_extension = ".jpg"};
    video_.frames.resize(6);
    for (int frame = 0; frame < 6; ++frame) {
      if (frame != 2) video_.frames[std::size_t(frame)] = {{{10.0 + frame, 10, 10, 20}, 1}, {{40, 10, 10, 20}, 1}};
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  tracking::Detections video_;
  FakeFiles files_;
  FakeNetwork network_;
};

TEST_F(Pictures, a_film_reads_each_frame_once_while_it_goes_forward) {
  Film film(files_, video_.info);
  for (const int frame : {1, 2, 1, 2, 3, 2, 3}) (void)film.at(frame);
  (void)film.at(4);  // read ahead while 3 was newest
  (void)film.at(6);
  EXPECT_EQ(files_.reads, (std::vector<std::string>{"000001.jpg", "000002.jpg", "000003.jpg", "000004.jpg",
                                                    "000005.jpg", "000006.jpg"}));
}

TEST_F(Pictures, a_missing_frame_or_folder_and_a_wrong_size_are_named) {
  fs::remove(folder_ / "000004.jpg");
  const std::string missing = complaint([&] { Film film(files_, video_.info); });
  EXPECT_NE(missing.find("000004.jpg: is missing; the sequence has frames 1 to 6"), std::string::npos) << missing;
  std::ofstream(folder_ / "000004.jpg");
  files_.size = {60, 48};
  Film film(files_, video_.info);
  const std::string size = complaint([&] { (void)film.at(1); });
  EXPECT_NE(size.find("000001.jpg: is 60 x 48 pixels; seqinfo.ini says 64 x 48"), std::string::npos) << size;
  video_.info.pictures.clear();
  const std::string none = complaint([&] { Film other(files_, video_.info); });
  EXPECT_NE(none.find("Walk: has no folder img1"), std::string::npos) << none;
}

TEST_F(Pictures, one_lesson_per_frame_with_tracks_and_detections_and_none_in_frames_held_out) {
  SiameseTrainOptions options;
  options.tracker.birth_wait = 1;
  options.tracker.camera = false;
  options.hold_out = 1;
  options.hold_back = 0;
  int frames = 0;
  const auto [objective, judged] = train_epoch(network_, files_, {video_}, options, [&](int done) { frames = done; });
  // Frame 1 has no tracks yet, frame 3 no detections, after it nobody was seen in the frame before, 6 is held out.
  EXPECT_EQ(network_.lessons, (std::vector<std::pair<std::size_t, std::size_t>>{{2, 2}, {2, 2}}));
  EXPECT_EQ(network_.learnt, 1);  // one batch, not full
  EXPECT_EQ(frames, 5);
  EXPECT_EQ(frames_per_epoch({video_}, options), 5);
  EXPECT_DOUBLE_EQ(objective, 0.5 * 2 / 4);
  EXPECT_EQ(judged, objective);
  options.hold_out = 5;
  EXPECT_THROW((void)frames_per_epoch({video_}, options), InvalidInput);
}

TEST_F(Pictures, frames_held_back_are_judged_after_the_last_step_and_teach_nothing) {
  SiameseTrainOptions options;
  options.tracker.birth_wait = 1;
  options.tracker.camera = false;
  options.hold_back = 0.3;
  const SiameseEpoch epoch = train_epoch(network_, files_, {video_}, options);
  EXPECT_EQ(network_.lessons.size(), 1U);                         // frame 2
  EXPECT_EQ(network_.judged_after, (std::vector<double>{1, 1}));  // frames 5 and 6
  EXPECT_DOUBLE_EQ(epoch.objective, 0.5 / 2);
  EXPECT_DOUBLE_EQ(epoch.judged, 0.25 / 2);
  const SiameseEpoch untrained = judge_epoch(network_, files_, {video_}, options);
  EXPECT_EQ(network_.lessons.size(), 1U);
  EXPECT_EQ(network_.learnt, 1);
  EXPECT_DOUBLE_EQ(untrained.judged, 0.25 / 2);
}

TEST_F(Pictures, a_video_without_detections_teaches_nothing) {
  for (auto& frame : video_.frames) frame.clear();
  prepare(network_, files_, {video_});
  EXPECT_EQ(train_epoch(network_, files_, {video_}, {}).objective, 0);
  EXPECT_TRUE(network_.lessons.empty());
  EXPECT_EQ(network_.measured, 0);
}

TEST_F(Pictures, statistics_come_from_the_first_frame_with_detections) {
  video_.frames[0].clear();
  prepare(network_, files_, {video_});
  EXPECT_EQ(network_.measured, 2);
  EXPECT_EQ(files_.reads.at(0), "000002.jpg");
}

TEST_F(Pictures, foresight_compares_with_the_truth_of_the_last_frames_only) {
  tracking::Labels truth;
  truth.frames.resize(6);
  for (int frame = 0; frame < 6; ++frame)
    truth.frames[std::size_t(frame)] = {{.id = 3, .box = {5.0 + 2 * frame, 10, 10, 20}}};
  truth.frames[5].push_back({.id = 4, .box = {30, 10, 10, 20}});  // new: nothing to predict it from
  network_.learnt = 2;
  Film film(files_, video_.info);
  const Foresight seen = foresight(network_, film, truth, 3);
  EXPECT_EQ(seen.predictions, 2);
  EXPECT_EQ(seen.frames, 3);
  EXPECT_DOUBLE_EQ(seen.overlap, 2);
  EXPECT_DOUBLE_EQ(seen.standing, 2 * 8.0 / 12.0);
}

TEST_F(Pictures, a_target_is_shown_as_it_was_first_or_as_it_was_last) {
  class Looking : public FakeNetwork {
   public:
    [[nodiscard]] std::vector<tracking::Found> predict(const std::vector<Sight>& sights) override {
      targets.push_back(sights.at(0).target);
      return FakeNetwork::predict(sights);
    }
    std::vector<std::shared_ptr<const Crop>> targets;
  } network;
  const auto look_twice = [&](Likeness likeness) {
    Film film(files_, video_.info);
    SiameseEyes eyes(network, film, likeness);
    (void)eyes.find(2, {{1, {10, 10, 10, 20}, {10, 10, 10, 20}}});
    (void)eyes.find(3, {{1, {10, 10, 10, 20}, {30, 10, 10, 20}}});
  };
  look_twice(Likeness::first);
  EXPECT_EQ(network.targets[0], network.targets[1]);
  look_twice(Likeness::last);
  EXPECT_EQ(network.targets[3]->values, target_crop(slope(64, 48), {30, 10, 10, 20}).values);
}

TEST_F(Pictures, true_links_are_taught_where_the_truth_is_given) {
  tracking::Labels truth;
  truth.frames.resize(6);
  for (int frame = 0; frame < 6; ++frame) {
    truth.frames[std::size_t(frame)] = {{.id = 3, .box = {10.0 + frame, 10, 10, 20}}};
  }
  SiameseTrainOptions options;
  options.tracker.birth_wait = 1;
  options.hold_back = 0;
  options.truth = {truth};
  (void)train_epoch(network_, files_, {video_}, options);
  EXPECT_EQ(network_.links.at(0), (std::vector<Index>{0, -1}));  // nobody is known to stand at the second box
}

TEST_F(Pictures, a_track_that_is_surely_found_survives_frames_without_its_detection) {
  tracking::TrackerOptions options;
  options.birth_wait = 1;
  options.camera = false;
  options.longest_gap = 0;
  video_.frames[3].clear();
  const auto boxes_per_frame = [&] {
    Film film(files_, video_.info);
    std::vector<std::size_t> counts;
    for (const auto& frame : tracking::track(video_, tracking::MotionModel::constant_velocity(), options,
                                             std::make_shared<SiameseEyes>(network_, film))) {
      counts.push_back(frame.size());
    }
    return counts;
  };
  network_.score = 0.4;
  options.appearance.survival_score = 0.5;
  EXPECT_EQ(boxes_per_frame(), (std::vector<std::size_t>{2, 2, 0, 0, 2, 2}));
  network_.score = 0.6;
  EXPECT_EQ(boxes_per_frame(), (std::vector<std::size_t>{2, 2, 2, 2, 2, 2}));
  options.appearance.longest_survival = 1;
  EXPECT_EQ(boxes_per_frame(), (std::vector<std::size_t>{2, 2, 2, 0, 2, 2}));
  // Nothing after the last detection of a track.
  options.appearance.longest_survival = 10;
  for (const std::size_t frame : {4U, 5U}) video_.frames[frame].clear();
  EXPECT_EQ(boxes_per_frame(), (std::vector<std::size_t>{2, 2, 0, 0, 0, 0}));
}

TEST_F(Pictures, the_motion_model_has_its_share_of_the_predicted_box) {
  Film film(files_, video_.info);
  tracking::TrackerOptions options;
  options.birth_wait = 1;
  options.camera = false;
  options.appearance.share = 0.25;
  network_.learnt = 4;
  tracking::Tracker tracker(tracking::MotionModel(), {64, 48}, options, std::make_shared<SiameseEyes>(network_, film));
  (void)tracker.step({{{10, 10, 10, 20}, 1}});
  network_.score = 1;
  const auto shown = tracker.step({});
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_DOUBLE_EQ(shown[0].box.left, 11);
}

TEST_F(Pictures, a_network_that_says_nonsense_is_an_error_not_a_track) {
  Film film(files_, video_.info);
  SiameseEyes eyes(network_, film);
  network_.learnt = NAN;
  const std::string message = complaint([&] { (void)eyes.find(2, {{1, {1, 1, 5, 5}, {1, 1, 5, 5}}}); });
  EXPECT_NE(message.find("frame 2: the network predicts a box that is not finite"), std::string::npos) << message;
}

TEST(SiameseFiles, a_checkpoint_reads_back_and_belongs_to_its_options) {
  const SiameseCheckpoint kept{{0.5, 0.25}, {0.6, 0.4, 0.5}, std::string("PK\0\n\x01", 5), std::string("PK\0", 3)};
  const std::string bytes = to_bytes(kept, "these");
  const SiameseCheckpoint back = checkpoint_from(bytes, "c", "these");
  EXPECT_EQ(back.objectives, kept.objectives);
  EXPECT_EQ(back.judged, kept.judged);
  EXPECT_EQ(back.network, kept.network);
  EXPECT_EQ(back.best, kept.best);
  EXPECT_EQ(kept.best_epoch(), 1);
  EXPECT_TRUE(kept.settled(1));
  EXPECT_FALSE(kept.settled(2));
  EXPECT_NE(complaint([&] { (void)checkpoint_from(bytes.substr(0, bytes.size() - 5), "c", "these"); }).find("damaged"),
            std::string::npos);
  EXPECT_NE(complaint([&] { (void)checkpoint_from(bytes, "c", "those"); }).find("c: was written for other videos"),
            std::string::npos);
  EXPECT_NE(complaint([&] { (void)checkpoint_from("{}", "c", ""); }).find("c: is not a checkpoint"), std::string::npos);
  EXPECT_NE(complaint([&] { (void)checkpoint_from("PK", "c", ""); }).find("c: is not a checkpoint"), std::string::npos);
}

TEST(SiameseFiles, impossible_options_are_refused_by_name) {
  EXPECT_THROW((void)scaled_channels(0), InvalidInput);
  EXPECT_EQ(scaled_channels(0.125), (Channels{12, 32, 48, 48, 32, 32}));
  EXPECT_EQ(scaled_channels(1e-9)[0], 1);
  SiameseTrainOptions options;
  options.links.unmatched = 1;
  EXPECT_THROW(validate(options), InvalidInput);
  options = {};
  options.hold_back = 1;
  EXPECT_THROW(validate(options), InvalidInput);
}

TEST(Components, one_that_is_missing_says_what_to_install) {
  const Component none{"none", "unshuffle_none.so", "nothing", "install nothing"};
  EXPECT_EQ(find_module(none), "");
  try {
    (void)load_function(none, "unshuffle_none");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "nothing needs the component none, which is not installed: install nothing");
  }
}

}  // namespace
}  // namespace unshuffle::pixels
