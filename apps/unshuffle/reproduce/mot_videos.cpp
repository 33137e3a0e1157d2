#include "reproduce/mot_videos.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "unshuffle/core/error.hpp"

namespace unshuffle::app {

std::vector<Video> read_videos(const Settings& settings) {
  std::vector<std::filesystem::path> folders;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(settings.mot_folder, failure)) {
    if (std::filesystem::exists(entry.path() / "det" / "det.txt") &&
        std::filesystem::exists(entry.path() / "gt" / "gt.txt")) {
      folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  if (folders.empty()) {
    throw BadData(fmt::format("{}: no folder in it has both det/det.txt and gt/gt.txt", settings.mot_folder));
  }
  std::vector<Video> videos;
  for (const auto& folder : folders) {
    Video video{tracking::read_detections(folder.string()), {}};
    video.truth = tracking::read_labels((folder / "gt" / "gt.txt").string(), video.detections.info.length);
    videos.push_back(std::move(video));
  }
  if (settings.quick) {
    std::ranges::stable_sort(videos, {}, [](const Video& video) { return video.detections.frames.size(); });
    videos.resize(std::min<std::size_t>(videos.size(), 2));
  }
  return videos;
}

Outcome& Outcome::operator+=(const Outcome& other) {
  counts += other.counts;
  seconds += other.seconds;
  return *this;
}

Outcome scored(const Video& video, const tracking::Labels& results, double seconds) {
  return {tracking::evaluate(video.truth, results, tracking::benchmark_of(video.name(), video.truth)), seconds};
}

const std::vector<std::string>& tracking_quantities() {
  static const std::vector<std::string> quantities{"MOTA", "MOTP", "IDF1", "HOTA", "MT",
                                                   "ML",   "FP",   "FN",   "IDS",  "frames/s"};
  return quantities;
}

Measurements as_measurements(const Measurement& place, const Outcome& outcome) {
  const tracking::Counts& counts = outcome.counts;
  const tracking::Scores scores = tracking::scores_of(counts);
  const std::vector<double> values{100 * scores.mota,
                                   100 * scores.motp,
                                   100 * scores.idf1,
                                   100 * scores.hota,
                                   double(counts.mostly_tracked),
                                   double(counts.mostly_lost),
                                   double(counts.false_positives),
                                   double(counts.misses),
                                   double(counts.switches),
                                   double(counts.frames) / std::max(outcome.seconds, 1e-9)};
  Measurements result;
  for (std::size_t k = 0; k < values.size(); ++k) {
    Measurement one = place;
    one.quantity = tracking_quantities()[k];
    one.value = values[k];
    result.push_back(std::move(one));
  }
  return result;
}

double mean_of(const Measurements& all, const Which& which) {
  std::vector<double> values;
  for (const Measurement& one : select(all, which)) values.push_back(one.value);
  return mean(values);
}

Listing tracking_table(const Measurements& all, const std::vector<std::string>& quantities) {
  Listing table;
  table.head = {"sequence", "method"};
  table.head.insert(table.head.end(), quantities.begin(), quantities.end());
  for (const std::string& sequence : panels_of(all)) {
    for (const std::string& method : methods_of(select(all, {sequence, "", ""}))) {
      std::vector<std::string> row{sequence, method};
      for (std::size_t k = 0; k < quantities.size(); ++k) {
        const bool there = !select(all, {sequence, method, quantities[k]}).empty();
        const int digits = quantities[k] == "IoU" ? 3 : k < 4 ? 1 : 0;
        row.push_back(there ? fmt::format("{:.{}f}", mean_of(all, {sequence, method, quantities[k]}), digits) : "");
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace unshuffle::app
