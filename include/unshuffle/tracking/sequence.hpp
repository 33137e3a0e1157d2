// MOTChallenge folders: SEQ/seqinfo.ini, SEQ/det/det.txt, SEQ/gt/gt.txt, pictures in SEQ/img1, and result files.
//
// A line is frame,id,left,top,width,height[,confidence[,class or x[,visibility or y[,z]]]], frames counted from 1, in
// any order. Columns that a file leaves out count as confidence 1 and class 1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tracking/box.hpp"

namespace unshuffle {
namespace tracking UNSHUFFLE_EXPORT {

struct SequenceInfo {
  std::string name;
  int length = 0;         ///< Frames.
  double frame_rate = 0;  ///< 0: not known.
  double width = 0;       ///< Of the image, in pixels.
  double height = 0;
  std::string pictures{};           ///< Folder with the frames; empty when there is none.
  std::string picture_extension{};  ///< With its dot.
};

/// Where a frame's picture is: six digits, counted from 1.
[[nodiscard]] std::string picture_path(const SequenceInfo& info, int frame);

/// Throws BadData naming the first of the sequence's pictures that is missing; nothing to do without a folder of them.
void require_pictures(const SequenceInfo& info);

struct Detection {
  Box box;
  double confidence = 1;
};

struct Detections {
  SequenceInfo info;
  std::vector<std::vector<Detection>> frames;  ///< One entry per frame, empty where nothing was detected.
  std::vector<std::string> notes;              ///< What was ignored, in words.
};

struct LabelledBox {
  long id = 0;
  Box box;
  double confidence = 1;
  int category = 1;
};

/// Boxes with identities; one entry per frame, by ascending id within a frame.
struct Labels {
  std::vector<std::vector<LabelledBox>> frames;
  int columns = 0;  ///< Of the widest line.
};

/// Throws BadData naming file and line; seqLength is required, name defaults to the folder's.
[[nodiscard]] SequenceInfo read_sequence_info(const std::string& path);

/// Detections of a sequence folder. Without seqinfo.ini the last frame with a detection is the last one, and the image
/// extends as far as the boxes do. Boxes without a positive width and height are ignored, with a note; anything that is
/// not a number, or a frame beyond the sequence, is BadData.
[[nodiscard]] Detections read_detections(const std::string& folder);

/// Ground truth or results. `length` 0: as many frames as the file has. Two boxes of one id in a frame, negative ids or
/// sizes and frames outside 1..length are BadData.
[[nodiscard]] Labels read_labels(const std::string& path, int length = 0);

/// `frame,id,left,top,width,height,confidence,-1,-1,-1`, by frame, then id. The confidence is -1 unless asked for.
[[nodiscard]] std::string to_mot(const std::vector<std::vector<LabelledBox>>& frames, bool with_confidence = false);

/// The same from memory; `source` is its name in messages. The picture folder is then a name within the folder.
[[nodiscard]] SequenceInfo parse_sequence_info(std::string_view content, const std::string& source);
[[nodiscard]] Detections parse_detections(std::string_view content, const std::string& source, SequenceInfo info);
[[nodiscard]] Labels parse_labels(std::string_view content, const std::string& source, int length = 0);

[[nodiscard]] bool has_sequence_info(const std::string& folder);

/// seqinfo.ini of the folder; the folder's name and nothing else when it has none.
[[nodiscard]] SequenceInfo info_of_folder(const std::string& folder);

}  // namespace tracking
}  // namespace unshuffle
