// Pictures and videos on disk. The OpenCV component does the work; it is loaded when first asked for.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/pixels/picture.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle {
namespace pixels UNSHUFFLE_EXPORT {

/// Where drawn frames go, in order.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// A picture with boxes, each in the colour of its id and with the id beside it.
  virtual void add(const Picture& picture, const std::vector<tracking::LabelledBox>& boxes) = 0;
  /// After the last frame; a video that is not finished is not there.
  virtual void finish() = 0;
};

class PictureFiles {
 public:
  virtual ~PictureFiles() = default;

  /// Throws BadData naming the file when it is missing or no picture.
  [[nodiscard]] virtual Picture read(const std::string& path) const = 0;

  /// A video when `out` ends in .mp4 or .avi, else a folder of 000001.jpg, 000002.jpg, ...
  [[nodiscard]] virtual std::unique_ptr<FrameSink> open(const std::string& out, double frame_rate) const = 0;
};

/// Throws InvalidInput saying what to install when the component is missing.
[[nodiscard]] const PictureFiles& picture_files();

/// The pictures of a sequence, the last two kept in memory. The frame after the newest is read ahead in a thread.
class Film {
 public:
  Film(const PictureFiles& files, tracking::SequenceInfo info);
  /// The reference holds until another frame is asked for. Throws BadData when the picture is missing or not of the
  /// sequence's size.
  [[nodiscard]] const Picture& at(int frame);
  [[nodiscard]] const tracking::SequenceInfo& info() const { return info_; }

 private:
  struct Frame {
    int number = 0;
    Picture picture;
  };
  [[nodiscard]] Picture picture_of(int frame);
  [[nodiscard]] Picture read(int frame) const;

  const PictureFiles& files_;
  tracking::SequenceInfo info_;
  Frame newer_, older_;
  int ahead_ = 0;  ///< Number of the frame being read.
  std::future<Picture> reading_;
};

/// Draws tracks on the frames of a sequence, or on blank ones when it has no pictures.
void draw_tracks(const tracking::SequenceInfo& info, const std::vector<std::vector<tracking::LabelledBox>>& frames,
                 const std::string& out);

}  // namespace pixels
}  // namespace unshuffle
