// The OpenCV component: pictures in, drawn frames out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/pixels/picture_files.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::pixels {
namespace {

/// Neighbouring ids get colours far apart: hues a golden angle from each other.
cv::Scalar color_of(long id) {
  const double golden_angle = 180 * (3 - std::sqrt(5.0));
  const double hue = std::fmod(double(id) * golden_angle, 360) / 2;  // OpenCV counts hues to 180.
  const cv::Mat hsv(1, 1, CV_8UC3, cv::Scalar(hue, 230, 220));
  cv::Mat bgr;
  cv::cvtColor(hsv, bgr, cv::COLOR_HSV2BGR);
  return bgr.at<cv::Vec3b>(0, 0);
}

cv::Point corner_of(const tracking::Box& box) { return {int(std::lround(box.left)), int(std::lround(box.top))}; }

/// Lines and text scale with the size of the picture.
double scale_of(const cv::Mat& canvas) { return std::max(1.0, canvas.rows / 600.0); }

void draw_box(cv::Mat& canvas, const tracking::LabelledBox& labelled) {
  const tracking::Box& box = labelled.box;
  const cv::Point end(int(std::lround(box.left + box.width)), int(std::lround(box.top + box.height)));
  const int thickness = int(std::lround(2 * scale_of(canvas)));
  cv::rectangle(canvas, corner_of(box), end, color_of(labelled.id), thickness, cv::LINE_AA);
}

void draw_id(cv::Mat& canvas, const tracking::LabelledBox& labelled) {
  constexpr int face = cv::FONT_HERSHEY_SIMPLEX;
  const double size = 0.45 * scale_of(canvas);
  const int thickness = int(std::lround(scale_of(canvas)));
  const int margin = 3 * thickness;
  const cv::Scalar color = color_of(labelled.id);
  const double brightness = 0.11 * color[0] + 0.59 * color[1] + 0.3 * color[2];
  const std::string text = std::to_string(labelled.id);
  int baseline = 0;
  const cv::Size letters = cv::getTextSize(text, face, size, thickness, &baseline);
  const cv::Size room(letters.width + 2 * margin, letters.height + 2 * margin);
  // Above the box, or inside where the picture ends; beside it where the box leaves the picture.
  const cv::Point corner = corner_of(labelled.box);
  const int left = std::max(0, std::min(corner.x, canvas.cols - room.width));
  const int top =
      std::max(0, std::min(corner.y >= room.height ? corner.y - room.height : corner.y, canvas.rows - room.height));
  cv::rectangle(canvas, cv::Rect({left, top}, room), color, cv::FILLED);
  cv::putText(canvas, text, {left + margin, top + room.height - margin}, face, size,
              cv::Scalar::all(brightness > 128 ? 0 : 255), thickness, cv::LINE_AA);
}

cv::Mat drawn(const Picture& picture, const std::vector<tracking::LabelledBox>& boxes) {
  cv::Mat canvas(picture.height, picture.width, CV_8UC3);
  std::copy(picture.values.begin(), picture.values.end(), canvas.data);
  for (const tracking::LabelledBox& box : boxes) draw_box(canvas, box);
  for (const tracking::LabelledBox& box : boxes) draw_id(canvas, box);  // No box runs through an id.
  return canvas;
}

class FolderSink : public FrameSink {
 public:
  explicit FolderSink(const std::string& folder) : folder_(folder) { make_folder(folder); }
  void add(const Picture& picture, const std::vector<tracking::LabelledBox>& boxes) override {
    const std::string path = (folder_ / fmt::format("{:06}.jpg", ++frame_)).string();
    if (!cv::imwrite(path, drawn(picture, boxes))) throw SystemFailure(fmt::format("{}: cannot be written", path));
  }
  void finish() override {}

 private:
  std::filesystem::path folder_;
  int frame_ = 0;
};

/// The video gets its name only when complete.
class VideoSink : public FrameSink {
 public:
  VideoSink(const std::string& path, double frame_rate) : path_(path), unfinished_(path_), frame_rate_(frame_rate) {
    unfinished_.replace_filename("unfinished-" + path_.filename().string());
  }
  ~VideoSink() override {
    writer_.release();
    std::error_code ignored;
    std::filesystem::remove(unfinished_, ignored);
  }
  VideoSink(const VideoSink&) = delete;
  VideoSink& operator=(const VideoSink&) = delete;

  void add(const Picture& picture, const std::vector<tracking::LabelledBox>& boxes) override {
    // Codecs need even sizes.
    const cv::Size size(picture.width & ~1, picture.height & ~1);
    if (!writer_.isOpened()) {
      const bool mp4 = path_.extension() == ".mp4";
      const int codec = mp4 ? cv::VideoWriter::fourcc('m', 'p', '4', 'v') : cv::VideoWriter::fourcc('M', 'J', 'P', 'G');
      if (!writer_.open(unfinished_.string(), codec, frame_rate_, size)) {
        throw SystemFailure(
            fmt::format("{}: cannot be written as a video of {} x {} pixels", path_.string(), size.width, size.height));
      }
    }
    writer_.write(drawn(picture, boxes)(cv::Rect({0, 0}, size)));
  }
  void finish() override {
    writer_.release();
    std::error_code failure;
    std::filesystem::rename(unfinished_, path_, failure);
    if (failure) throw SystemFailure(fmt::format("{}: cannot be written: {}", path_.string(), failure.message()));
  }

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  double frame_rate_;
  cv::VideoWriter writer_;
};

class OpenCvFiles : public PictureFiles {
 public:
  [[nodiscard]] Picture read(const std::string& path) const override {
    const cv::Mat image = cv::imread(path, cv::IMREAD_COLOR);
    if (image.empty()) throw BadData(fmt::format("{}: is missing or is not a picture", path));
    Picture picture{image.cols, image.rows, {}};
    for (int row = 0; row < image.rows; ++row) {
      picture.values.insert(picture.values.end(), image.ptr(row), image.ptr(row) + std::ptrdiff_t(3) * image.cols);
    }
    return picture;
  }
  [[nodiscard]] std::unique_ptr<FrameSink> open(const std::string& out, double frame_rate) const override {
    const std::string extension = std::filesystem::path(out).extension().string();
    if (extension == ".mp4" || extension == ".avi") return std::make_unique<VideoSink>(out, frame_rate);
    return std::make_unique<FolderSink>(out);
  }
};

}  // namespace
}  // namespace unshuffle::pixels

extern "C" UNSHUFFLE_EXPORT const char* unshuffle_component_version() { return unshuffle::version; }

extern "C" UNSHUFFLE_EXPORT const unshuffle::pixels::PictureFiles* unshuffle_picture_files() {
  static const unshuffle::pixels::OpenCvFiles files;
  return &files;
}
