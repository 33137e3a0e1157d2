#include "unshuffle/tracking/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>

#include "core/text.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::tracking {
namespace {

constexpr int most_columns = 10;
constexpr int fewest_columns = 6;
constexpr double most_frames = 1e6;  // nine hours; limits the memory a single line can claim

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Calls back with every line that is not blank and its number.
void for_each_line(std::string_view content, const std::function<void(std::string_view, long)>& action) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (content.starts_with(byte_order_mark)) content.remove_prefix(byte_order_mark.size());
  for (long number = 1; !content.empty(); ++number) {
    const auto end = content.find('\n');
    const std::string_view line = trimmed(content.substr(0, end));
    if (!line.empty()) action(line, number);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
  }
}

/// One line of a MOT file: its location and its numbers.
struct Row {
  std::string place;  ///< file:line
  std::array<double, most_columns> values{};
  int columns = 0;

  [[nodiscard]] int frame() const { return static_cast<int>(values[0]); }
  [[nodiscard]] Box box() const { return {values[2], values[3], values[4], values[5]}; }
  [[nodiscard]] double confidence() const { return columns > 6 ? values[6] : 1; }
};

constexpr std::array<std::string_view, most_columns> column_names{"frame",  "id",         "left", "top", "width",
                                                                  "height", "confidence", "8",    "9",   "10"};

double parse_value(std::string_view cell, const Row& row) {
  const std::string_view name = column_names[static_cast<std::size_t>(row.columns)];
  if (const auto value = parse_number(cell)) return *value;
  throw BadData(fmt::format("{}: column {} holds \"{}\"; a finite number was expected", row.place, name, cell));
}

void require_whole(const Row& row, int column, double least, double most) {
  const double value = row.values[static_cast<std::size_t>(column)];
  if (value == std::floor(value) && value >= least && value <= most) return;
  throw BadData(fmt::format("{}: {} {} is not a whole number from {:.0f} to {:.0f}", row.place,
                            column_names[static_cast<std::size_t>(column)], value, least, most));
}

Row parse_row(std::string_view line, std::string place, int length) {
  Row row;
  row.place = std::move(place);
  while (true) {
    const auto comma = line.find(',');
    if (row.columns == most_columns) {
      throw BadData(fmt::format("{}: more than {} columns", row.place, most_columns));
    }
    row.values[static_cast<std::size_t>(row.columns)] = parse_value(trimmed(line.substr(0, comma)), row);
    ++row.columns;
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  if (row.columns < fewest_columns) {
    throw BadData(fmt::format("{}: {} columns; frame,id,left,top,width,height and up to four more were expected",
                              row.place, row.columns));
  }
  require_whole(row, 0, 1, length > 0 ? length : most_frames);
  return row;
}

void for_each_row(std::string_view content, const std::string& source, int length,
                  const std::function<void(const Row&)>& action) {
  for_each_line(content, [&](std::string_view line, long number) {
    action(parse_row(line, fmt::format("{}:{}", source, number), length));
  });
}

template <class Entry>
std::vector<Entry>& frame_of(std::vector<std::vector<Entry>>& frames, int frame) {
  if (frames.size() < static_cast<std::size_t>(frame)) frames.resize(static_cast<std::size_t>(frame));
  return frames[static_cast<std::size_t>(frame) - 1];
}

std::string name_of_folder(const std::filesystem::path& folder) {
  const auto whole = std::filesystem::absolute(folder).lexically_normal();
  return as_utf8((whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string());
}

std::string info_path(const std::string& folder) { return (std::filesystem::path(folder) / "seqinfo.ini").string(); }

/// det/det.txt, or det.txt in the folder itself when only that is there.
std::string detections_path(const std::filesystem::path& folder) {
  const auto usual = folder / "det" / "det.txt";
  const auto flat = folder / "det.txt";
  return (!std::filesystem::exists(usual) && std::filesystem::exists(flat) ? flat : usual).string();
}

/// Values and line numbers by key.
using Settings = std::map<std::string, std::pair<std::string, long>, std::less<>>;

double positive_setting(const Settings& settings, const std::string& key, const std::string& path) {
  const auto found = settings.find(key);
  if (found == settings.end()) return 0;
  const auto& [text, line] = found->second;
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) {
    throw BadData(fmt::format("{}:{}: {} = \"{}\"; a number > 0 was expected", path, line, key, text));
  }
  return value;
}

std::string setting_or(const Settings& settings, const std::string& key, const std::string& usual) {
  const auto found = settings.find(key);
  return found == settings.end() ? usual : found->second.first;
}

constexpr const char* usual_pictures = "img1";
constexpr const char* usual_extension = ".jpg";

/// Pictures must be inside the sequence's folder: a foreign file must not point the reader elsewhere.
std::string require_inside(const Settings& settings, const std::string& key, const std::string& usual,
                           const std::string& path) {
  const auto found = settings.find(key);
  if (found == settings.end()) return usual;
  const auto& [text, line] = found->second;
  if (text.find_first_of("/\\") == std::string::npos && text != "..") return text;
  throw BadData(fmt::format("{}:{}: {} = {} leads out of the sequence's folder", path, line, key, text));
}

void find_pictures(SequenceInfo& info, const std::filesystem::path& folder) {
  const auto pictures = folder / info.pictures;
  info.pictures = std::filesystem::is_directory(pictures) ? pictures.string() : "";
}

}  // namespace

bool has_sequence_info(const std::string& folder) { return std::filesystem::exists(info_path(folder)); }

SequenceInfo parse_sequence_info(std::string_view content, const std::string& path) {
  Settings settings;
  for_each_line(content, [&](std::string_view line, long number) {
    if (line.starts_with('[') || line.starts_with(';') || line.starts_with('#')) return;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) {
      throw BadData(fmt::format("{}:{}: \"{}\" is not of the form key=value", path, number, line));
    }
    settings[std::string(trimmed(line.substr(0, equals)))] = {std::string(trimmed(line.substr(equals + 1))), number};
  });
  SequenceInfo info;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  info.name = as_utf8(setting_or(settings, "name", name_of_folder(folder)));
  const double length = positive_setting(settings, "seqLength", path);
  if (length < 1 || length > most_frames || length != std::floor(length)) {
    throw BadData(fmt::format("{}: seqLength = {} must be a whole number of frames, at least 1", path, length));
  }
  info.length = static_cast<int>(length);
  info.frame_rate = positive_setting(settings, "frameRate", path);
  info.width = positive_setting(settings, "imWidth", path);
  info.height = positive_setting(settings, "imHeight", path);
  info.pictures = require_inside(settings, "imDir", usual_pictures, path);
  info.picture_extension = require_inside(settings, "imExt", usual_extension, path);
  return info;
}

SequenceInfo read_sequence_info(const std::string& path) {
  SequenceInfo info = parse_sequence_info(read_file(path), path);
  find_pictures(info, std::filesystem::path(path).parent_path());
  return info;
}

SequenceInfo info_of_folder(const std::string& folder) {
  if (has_sequence_info(folder)) return read_sequence_info(info_path(folder));
  SequenceInfo info;
  info.name = name_of_folder(folder);
  info.pictures = usual_pictures;
  info.picture_extension = usual_extension;
  find_pictures(info, folder);
  return info;
}

std::string picture_path(const SequenceInfo& info, int frame) {
  return (std::filesystem::path(info.pictures) / fmt::format("{:06}{}", frame, info.picture_extension)).string();
}

void require_pictures(const SequenceInfo& info) {
  if (info.pictures.empty()) return;
  for (int frame = 1; frame <= info.length; ++frame) {
    const std::string path = picture_path(info, frame);
    if (std::filesystem::exists(path)) continue;
    throw BadData(fmt::format("{}: is missing; the sequence has frames 1 to {}", path, info.length));
  }
}

Detections parse_detections(std::string_view content, const std::string& source, SequenceInfo info) {
  Detections result;
  result.info = std::move(info);
  long without_area = 0;
  std::string first_place;
  double right = 1;
  double bottom = 1;
  for_each_row(content, source, result.info.length, [&](const Row& row) {
    auto& frame = frame_of(result.frames, row.frame());
    const Box box = row.box();
    if (box.width <= 0 || box.height <= 0) {
      if (without_area++ == 0) first_place = row.place;
      return;
    }
    frame.push_back({box, row.confidence()});
    right = std::max(right, box.left + box.width);
    bottom = std::max(bottom, box.top + box.height);
  });
  if (without_area > 0) {
    result.notes.push_back(fmt::format("{}: {} detections without a positive width and height were ignored, first",
                                       first_place, without_area));
  }
  if (result.info.length == 0) result.info.length = static_cast<int>(result.frames.size());
  if (result.info.width == 0) result.info.width = right;
  if (result.info.height == 0) result.info.height = bottom;
  result.frames.resize(static_cast<std::size_t>(result.info.length));
  return result;
}

namespace {

/// Says what to name instead, where a file or the folder above was named.
void require_sequence(const std::filesystem::path& folder, const std::string& path) {
  if (std::filesystem::is_regular_file(folder)) {
    throw BadData(fmt::format("{}: is a file; the sequence's folder was expected, the one with det/det.txt in it",
                              folder.string()));
  }
  if (std::filesystem::exists(path) || !std::filesystem::is_directory(folder)) return;
  std::vector<std::string> inside;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(detections_path(entry.path()))) inside.push_back(entry.path().filename().string());
  }
  if (inside.empty()) return;
  std::sort(inside.begin(), inside.end());
  throw BadData(fmt::format("{}: holds {} sequences, such as {}, and no det/det.txt of its own; name them: {}",
                            folder.string(), inside.size(), inside.front(), (folder / "*").string()));
}

}  // namespace

Detections read_detections(const std::string& folder) {
  const std::string path = detections_path(folder);
  require_sequence(folder, path);
  return parse_detections(read_file(path), path, info_of_folder(folder));
}

Labels parse_labels(std::string_view content, const std::string& source, int length) {
  Labels labels;
  std::map<std::pair<int, long>, std::string> seen;
  for_each_row(content, source, length, [&](const Row& row) {
    require_whole(row, 1, 0, 1e15);
    if (row.values[4] < 0 || row.values[5] < 0) {
      throw BadData(fmt::format("{}: width {} and height {}; sizes of at least 0 were expected", row.place,
                                row.values[4], row.values[5]));
    }
    const auto id = static_cast<long>(row.values[1]);
    const auto [first, fresh] = seen.emplace(std::pair(row.frame(), id), row.place);
    if (!fresh) {
      throw BadData(fmt::format("{}: id {} is in frame {} already, see {}", row.place, id, row.frame(), first->second));
    }
    // A class, or a coordinate in files of 2015, which may be any number.
    const int category = row.columns > 7 ? static_cast<int>(std::clamp(row.values[7], -1e9, 1e9)) : 1;
    frame_of(labels.frames, row.frame()).push_back({id, row.box(), row.confidence(), category});
    labels.columns = std::max(labels.columns, row.columns);
  });
  if (length > 0) labels.frames.resize(static_cast<std::size_t>(length));
  for (auto& frame : labels.frames) {
    std::sort(frame.begin(), frame.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }
  return labels;
}

Labels read_labels(const std::string& path, int length) { return parse_labels(read_file(path), path, length); }

std::string to_mot(const std::vector<std::vector<LabelledBox>>& frames, bool with_confidence) {
  std::string out;
  for (std::size_t at = 0; at < frames.size(); ++at) {
    std::vector<LabelledBox> boxes = frames[at];
    std::sort(boxes.begin(), boxes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const LabelledBox& entry : boxes) {
      const Box& box = entry.box;
      out +=
          fmt::format("{},{},{:.2f},{:.2f},{:.2f},{:.2f},", at + 1, entry.id, box.left, box.top, box.width, box.height);
      if (with_confidence) {
        append_number(out, entry.confidence);
      } else {
        out += "-1";
      }
      out += ",-1,-1,-1\n";
    }
  }
  return out;
}

}  // namespace unshuffle::tracking
