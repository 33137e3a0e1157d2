// MOTChallenge files: every variant that is accepted, and what is said about the others.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "unshuffle/core/error.hpp"
#include "unshuffle/tracking/model_file.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle::tracking {
namespace {

namespace fs = std::filesystem;

class MotFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("unshuffle_mot_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "det");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }
  Detections detections(const std::string& content) const {
    write("det/det.txt", content);
    return read_detections(folder_.string());
  }
  void describe(int frames = 3) const {
    write("seqinfo.ini", "[Sequence]\r\nname=Walk\r\nframeRate=14\r\nseqLength=" + std::to_string(frames) +
                             "\r\nimWidth=640\r\nimHeight=480\r\n\r\n");
  }
  template <class Action>
  static std::string refusal(Action action) {
    try {
      action();
    } catch (const BadData& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  fs::path folder_;
};

TEST_F(MotFiles, accepts_six_seven_nine_and_ten_columns_in_any_order) {
  describe();
  const Detections read =
      detections("3,-1,1,2,30,40\n1,-1,5,6,7,8,0.5\n 1 , -1, 9,10,11,12,-3,1,0.2\r\n1,-1,1,1,2,2,1,-1,-1,-1\n\n");
  EXPECT_EQ(read.info.name, "Walk");
  EXPECT_EQ(read.info.width, 640);
  EXPECT_EQ(read.info.frame_rate, 14);
  ASSERT_EQ(read.frames.size(), 3U);
  ASSERT_EQ(read.frames[0].size(), 3U);
  EXPECT_EQ(read.frames[0][0].confidence, 0.5);
  EXPECT_EQ(read.frames[0][1].confidence, -3);
  EXPECT_EQ(read.frames[0][1].box.height, 12);
  EXPECT_TRUE(read.frames[1].empty());
  EXPECT_EQ(read.frames[2][0].confidence, 1);
}

TEST_F(MotFiles, a_sequence_without_detections_has_empty_frames) {
  describe(5);
  const Detections read = detections("");
  ASSERT_EQ(read.frames.size(), 5U);
  for (const auto& frame : read.frames) EXPECT_TRUE(frame.empty());
}

TEST_F(MotFiles, without_seqinfo_the_boxes_say_how_large_everything_is) {
  const Detections read = detections("4,-1,10,20,30,40\n");
  EXPECT_EQ(read.info.length, 4);
  EXPECT_EQ(read.info.width, 40);
  EXPECT_EQ(read.info.height, 60);
  EXPECT_EQ(read.info.name, folder_.filename().string());
}

TEST_F(MotFiles, detections_without_area_are_left_out_and_said_to_be) {
  describe();
  const Detections read = detections("1,-1,1,1,5,5\n1,-1,1,1,-5,5\n2,-1,1,1,5,0\n");
  EXPECT_EQ(read.frames[0].size(), 1U);
  EXPECT_TRUE(read.frames[1].empty());
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_NE(read.notes[0].find("det.txt:2: 2 detections"), std::string::npos) << read.notes[0];
}

TEST_F(MotFiles, errors_name_file_line_value_and_what_was_expected) {
  describe();
  const auto says = [&](const std::string& content, const std::string& words) {
    const std::string message = refusal([&] { (void)detections(content); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says("1,-1,1,1,5,5\n1,-1,nan,1,5,5\n", "det.txt:2: column left holds \"nan\"; a finite number was expected");
  says("1,-1,1,1,inf,5\n", "column width holds \"inf\"");
  says("1,-1,1,,5,5\n", "column top holds \"\"");
  says("1,-1,1,1,5\n", "det.txt:1: 5 columns");
  says("1,-1,1,1,5,5,1,1,1,1,1\n", "more than 10 columns");
  says("4,-1,1,1,5,5\n", "frame 4 is not a whole number from 1 to 3");
  says("0,-1,1,1,5,5\n", "frame 0 is not");
  says("1.5,-1,1,1,5,5\n", "frame 1.5 is not");
}

TEST_F(MotFiles, labels_refuse_two_boxes_of_one_id_and_negative_sizes) {
  const auto says = [&](const std::string& content, const std::string& words) {
    const std::string path = write("gt.txt", content);
    const std::string message = refusal([&] { (void)read_labels(path, 9); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says("1,7,1,1,5,5\n2,7,1,1,5,5\n1,7,2,2,5,5\n", "gt.txt:3: id 7 is in frame 1 already, see ");
  says("1,7,1,1,5,-5\n", "gt.txt:1: width 5 and height -5");
  says("1,-1,1,1,5,5\n", "id -1 is not a whole number");
  says("10,1,1,1,5,5\n", "frame 10 is not a whole number from 1 to 9");
}

TEST_F(MotFiles, seqinfo_errors_name_line_and_value) {
  const auto says = [&](const std::string& content, const std::string& words) {
    const std::string path = write("seqinfo.ini", content);
    const std::string message = refusal([&] { (void)read_sequence_info(path); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says("[Sequence]\nseqLength=many\n", "seqinfo.ini:2: seqLength = \"many\"; a number > 0 was expected");
  says("[Sequence]\nname=a\n", "seqLength = 0 must be a whole number");
  says("[Sequence]\nseqLength\n", "seqinfo.ini:2: \"seqLength\" is not of the form key=value");
  EXPECT_NE(refusal([&] { (void)read_sequence_info(write("none/seqinfo.ini", "")); }).find("cannot be opened"),
            std::string::npos);
}

TEST_F(MotFiles, results_are_written_by_frame_then_id_and_read_back) {
  std::vector<std::vector<LabelledBox>> frames(2);
  frames[1] = {{.id = 9, .box = {1.234, 2, 3, 4}}, {.id = 2, .box = {5, 6, 7, 8}}};
  const std::string text = to_mot(frames);
  EXPECT_EQ(text, "2,2,5.00,6.00,7.00,8.00,-1,-1,-1,-1\n2,9,1.23,2.00,3.00,4.00,-1,-1,-1,-1\n");
  const Labels back = read_labels(write("out.txt", text), 2);
  ASSERT_EQ(back.frames[1].size(), 2U);
  EXPECT_EQ(back.frames[1][0].id, 2);
  EXPECT_EQ(back.columns, 10);
}

TEST_F(MotFiles, a_model_file_reads_back_to_the_same_bits) {
  SavedModel saved{.model = MotionModel(4), .camera = false, .objective = 0.125, .trained_on = {"Walk"}};
  saved.model.draw_hidden_weights(3);
  const SavedModel back = model_from_json(to_json(saved), "m.json");
  EXPECT_EQ(back.model.values(), saved.model.values());
  EXPECT_EQ(back.camera, false);
  EXPECT_EQ(back.trained_on, saved.trained_on);
}

TEST_F(MotFiles, a_model_file_of_another_kind_is_refused_by_name) {
  const auto says = [&](const std::string& content, const std::string& words) {
    const std::string message = refusal([&] { (void)model_from_json(content, "m.json"); });
    EXPECT_NE(message.find("m.json"), std::string::npos) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says("{}", "format");
  says("not json", "not JSON: byte 2 cannot be understood");
  says(R"({"format":"unshuffle motion model 1","hidden":0,"values":[1,2],"camera":true,"objective":0,"trained_on":[]})",
       "2 motion parameters were given; 27 were expected");
}

}  // namespace
}  // namespace unshuffle::tracking
