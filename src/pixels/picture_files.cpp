#include "unshuffle/pixels/picture_files.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "unshuffle/core/error.hpp"

namespace unshuffle::pixels {

Film::Film(const PictureFiles& files, tracking::SequenceInfo info) : files_(files), info_(std::move(info)) {
  if (info_.pictures.empty()) {
    throw BadData(fmt::format("{}: has no folder img1 (or imDir of seqinfo.ini) with its frames", info_.name));
  }
  tracking::require_pictures(info_);
}

const Picture& Film::at(int frame) {
  if (older_.number == frame) std::swap(older_, newer_);
  if (newer_.number == frame) return newer_.picture;
  older_ = std::exchange(newer_, {frame, picture_of(frame)});
  if (frame < info_.length) {
    ahead_ = frame + 1;
    reading_ = std::async(std::launch::async, [this] { return read(ahead_); });
  }
  return newer_.picture;
}

/// Read ahead or now.
Picture Film::picture_of(int frame) {
  if (!reading_.valid()) return read(frame);
  if (ahead_ == frame) return reading_.get();
  reading_.wait();  // What is wrong with a frame that nobody asked for is nobody's concern.
  reading_ = {};
  return read(frame);
}

Picture Film::read(int frame) const {
  const std::string path = tracking::picture_path(info_, frame);
  Picture picture = files_.read(path);
  if (picture.width != info_.width || picture.height != info_.height) {
    throw BadData(fmt::format("{}: is {} x {} pixels; seqinfo.ini says {} x {}", path, picture.width, picture.height,
                              info_.width, info_.height));
  }
  return picture;
}

namespace {

// Light enough for every colour that ids have.
constexpr std::uint8_t blank_shade = 245;
constexpr double usual_frame_rate = 25;

Picture blank(const tracking::SequenceInfo& info) {
  Picture picture{int(std::ceil(info.width)), int(std::ceil(info.height)), {}};
  picture.values.assign(std::size_t(3) * picture.width * picture.height, blank_shade);
  return picture;
}

}  // namespace

void draw_tracks(const tracking::SequenceInfo& info, const std::vector<std::vector<tracking::LabelledBox>>& frames,
                 const std::string& out) {
  const PictureFiles& files = picture_files();
  tracking::require_pictures(info);
  const auto sink = files.open(out, info.frame_rate > 0 ? info.frame_rate : usual_frame_rate);
  const Picture canvas = info.pictures.empty() ? blank(info) : Picture();
  for (std::size_t at = 0; at < frames.size(); ++at) {
    sink->add(info.pictures.empty() ? canvas : files.read(tracking::picture_path(info, int(at) + 1)), frames[at]);
  }
  sink->finish();
}

}  // namespace unshuffle::pixels
