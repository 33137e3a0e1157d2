#include "unshuffle/pixels/siamese.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/checksum.hpp"
#include "core/read_json.hpp"
#include "core/text.hpp"
#include "tracking/require.hpp"
#include "tracking/true_links.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::pixels {

using tracking::Box;
using tracking::Found;

Channels scaled_channels(double width) {
  tracking::require(width > 0 && width <= 2, "width", width, "above 0 and at most 2");
  Channels channels = published_channels;
  for (auto& count : channels) count = std::max<std::int64_t>(1, std::llround(double(count) * width));
  return channels;
}

bool is_state_dictionary(const std::string& path) {
  std::array<char, 2> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return start == std::array<char, 2>{'P', 'K'};
}

namespace {

bool same(const Box& a, const Box& b) {
  return a.left == b.left && a.top == b.top && a.width == b.width && a.height == b.height;
}

void require_finite(const std::vector<Found>& found, int frame) {
  const bool finite = std::all_of(found.begin(), found.end(), [](const Found& one) {
    const Box& box = one.box;
    return std::isfinite(box.left + box.top + box.width + box.height) && box.width > 0 && box.height > 0;
  });
  if (finite) return;
  throw BadData(fmt::format(
      "frame {}: the network predicts a box that is not finite; its weights are broken or the learning rate too large",
      frame));
}

}  // namespace

// A crop is cached while it is searched for in every frame.
std::vector<Sight> SiameseEyes::sights(int frame, const std::vector<tracking::Sighting>& sightings) {
  std::vector<Target> targets;
  for (const tracking::Sighting& sighting : sightings) {
    const bool first = likeness_ == Likeness::first;
    const int shown = first ? sighting.first_frame : frame - 1;
    const Box& box = first ? sighting.first : sighting.last;
    const auto known = std::find_if(targets_.begin(), targets_.end(), [&](const Target& target) {
      return target.frame == shown && same(target.box, box);
    });
    targets.push_back(known != targets_.end()
                          ? *known
                          : Target{shown, box, std::make_shared<Crop>(target_crop(film_.at(shown), box))});
  }
  targets_ = std::move(targets);
  const Picture& now = film_.at(frame);
  std::vector<Sight> result(sightings.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t at = 0; at < sightings.size(); ++at) {
    const Box& last = sightings[at].last;
    result[at] = {targets_[at].crop, search_crop(now, last, network_.search_side()), last};
  }
  return result;
}

std::vector<Found> SiameseEyes::find(int frame, const std::vector<tracking::Sighting>& sightings) {
  std::vector<Found> found = network_.predict(sights(frame, sightings));
  require_finite(found, frame);
  return found;
}

namespace {

struct Losses {
  double sum = 0;
  double pairs = 0;

  void add(double loss, std::size_t tracks, std::size_t detections) {
    sum += loss;
    pairs += double(std::min(tracks, detections));
  }
  void operator+=(const Losses& other) {
    sum += other.sum;
    pairs += other.pairs;
  }
  [[nodiscard]] double mean() const { return pairs > 0 ? sum / pairs : 0; }
};

int used_frames(const tracking::Detections& video, const SiameseTrainOptions& options) {
  return video.info.length - options.hold_out;
}

/// At least two, a track and where it went.
int learned_frames(const tracking::Detections& video, const SiameseTrainOptions& options) {
  const int used = used_frames(video, options);
  return std::max(2, used - int(std::lround(options.hold_back * used)));
}

/// An appearance model that learns from the frames up to a given one and is evaluated on the rest.
class LearningEyes : public SiameseEyes {
 public:
  LearningEyes(SiameseNetwork& network, Film& film, const tracking::Detections& video, const tracking::Labels* truth,
               const SiameseTrainOptions& options, bool learns)
      : SiameseEyes(network, film, options.likeness),
        video_(video),
        truth_(truth),
        options_(options),
        confidence_(tracking::Confidence::of(video.frames)),
        learns_(learns) {}

  std::vector<Found> find(int frame, const std::vector<tracking::Sighting>& sightings) override {
    const Teaching teaching = taught_by(frame, sightings);
    if (teaching.detections.empty()) return SiameseEyes::find(frame, sightings);
    const bool held_back = frame > learned_frames(video_, options_);
    if (held_back) step();
    Lesson lesson = look(learns_ && !held_back, sights(frame, sightings), teaching);
    require_finite(lesson.found, frame);
    (held_back ? judged : learned).add(lesson.loss, sightings.size(), teaching.detections.size());
    if (frames_since_step_ == options_.batch) step();
    return std::move(lesson.found);
  }

  /// With the frames of a batch, full or not.
  void step() {
    if (frames_since_step_ > 0) network_.step(options_.learning_rate);
    frames_since_step_ = 0;
  }

  Losses learned, judged;

 private:
  Lesson look(bool learn, const std::vector<Sight>& sights, const Teaching& teaching) {
    if (!learn) return network_.judge(sights, teaching);
    ++frames_since_step_;
    return network_.learn(sights, teaching);
  }

  /// The detections that are trusted, and where the truth is known the one that belongs to each track.
  [[nodiscard]] Teaching taught_by(int frame, const std::vector<tracking::Sighting>& sightings) const {
    Teaching teaching{.detections = {},
                      .diagonal = tracking::Image{video_.info.width, video_.info.height}.diagonal(),
                      .links = options_.links};
    const auto at = std::size_t(frame) - 1;
    for (const tracking::Detection& detection : video_.frames[at]) {
      const bool used = detection.confidence >= options_.tracker.least_confidence;
      if (used && confidence_(detection.confidence) >= options_.tracker.trust.match) {
        teaching.detections.push_back(detection.box);
      }
    }
    if (truth_ == nullptr) return teaching;
    std::vector<Box> before;
    for (const tracking::Sighting& sighting : sightings) before.push_back(sighting.last);
    teaching.known = tracking::true_links(before, truth_->frames[at - 1], teaching.detections, truth_->frames[at]);
    return teaching;
  }

  const tracking::Detections& video_;
  const tracking::Labels* truth_;  ///< Null: not known.
  const SiameseTrainOptions& options_;
  tracking::Confidence confidence_;
  bool learns_;
  int frames_since_step_ = 0;
};

}  // namespace

void validate(const SiameseTrainOptions& options) {
  tracking::require_training(options, options.links);
  tracking::require(options.hold_out >= 0, "hold_out", options.hold_out, "at least 0");
  tracking::require(options.hold_back >= 0 && options.hold_back < 1, "hold_back", options.hold_back,
                    "at least 0 and below 1");
  tracking::require(options.patience >= 1, "patience", options.patience, "at least 1");
  tracking::require(options.links.rho >= 0, "rho", options.links.rho, "at least 0");
}

void prepare(SiameseNetwork& network, const PictureFiles& files, const std::vector<tracking::Detections>& videos) {
  for (const tracking::Detections& video : videos) {
    Film film(files, video.info);
    for (std::size_t at = 0; at < video.frames.size(); ++at) {
      if (video.frames[at].empty()) continue;
      const Picture& picture = film.at(int(at) + 1);
      std::vector<Sight> sights;
      for (const tracking::Detection& detection : video.frames[at]) {
        sights.push_back({std::make_shared<Crop>(target_crop(picture, detection.box)),
                          search_crop(picture, detection.box, network.search_side()), detection.box});
      }
      network.measure_statistics(sights);
      return;
    }
  }
}

int frames_per_epoch(const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options) {
  int frames = 0;
  for (const tracking::Detections& video : videos) {
    if (used_frames(video, options) < 2) {
      throw InvalidInput(fmt::format("hold_out = {} leaves fewer than two of the {} frames of {}", options.hold_out,
                                     video.info.length, video.info.name));
    }
    frames += used_frames(video, options);
  }
  return frames;
}

namespace {

SiameseEpoch go_through(SiameseNetwork& network, const PictureFiles& files,
                        const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options,
                        bool learns, const std::function<void(int)>& watch) {
  Losses learned, judged;
  int done = 0;
  for (std::size_t at = 0; at < videos.size(); ++at) {
    const tracking::Detections& video = videos[at];
    const tracking::Labels* truth = options.truth.empty() ? nullptr : &options.truth[at];
    Film film(files, video.info);
    const auto eyes = std::make_shared<LearningEyes>(network, film, video, truth, options, learns);
    tracking::Tracker tracker(tracking::MotionModel::constant_velocity(), {video.info.width, video.info.height},
                              options.tracker, eyes);
    tracker.set_confidence(tracking::Confidence::of(video.frames));
    for (int frame = 1; frame <= used_frames(video, options); ++frame) {
      tracker.step(video.frames[std::size_t(frame) - 1]);
      if (watch) watch(++done);
    }
    eyes->step();
    learned += eyes->learned;
    judged += eyes->judged;
  }
  return {learned.mean(), judged.pairs > 0 ? judged.mean() : learned.mean()};
}

}  // namespace

SiameseEpoch train_epoch(SiameseNetwork& network, const PictureFiles& files,
                         const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options,
                         const std::function<void(int)>& watch) {
  return go_through(network, files, videos, options, true, watch);
}

SiameseEpoch judge_epoch(SiameseNetwork& network, const PictureFiles& files,
                         const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options) {
  return go_through(network, files, videos, options, false, {});
}

Foresight& Foresight::operator+=(const Foresight& other) {
  overlap += other.overlap;
  standing += other.standing;
  predictions += other.predictions;
  frames += other.frames;
  seconds += other.seconds;
  return *this;
}

Foresight foresight(SiameseNetwork& network, Film& film, const tracking::Labels& truth, int frames, Likeness likeness) {
  const tracking::SequenceInfo& info = film.info();
  SiameseEyes eyes(network, film, likeness);
  std::map<long, tracking::Sighting> people;
  Foresight result;
  const auto begin = std::chrono::steady_clock::now();
  const int first = std::max(1, info.length - frames + 1);
  for (int frame = first; frame <= info.length; ++frame) {
    std::vector<tracking::Sighting> sightings;
    std::vector<Box> wanted;
    std::map<long, tracking::Sighting> present;
    for (const tracking::LabelledBox& labelled : truth.frames[std::size_t(frame) - 1]) {
      if (labelled.confidence == 0) continue;
      const auto before = people.find(labelled.id);
      tracking::Sighting now{frame, labelled.box, labelled.box};
      if (before != people.end()) {
        sightings.push_back(before->second);
        wanted.push_back(labelled.box);
        now.first_frame = before->second.first_frame;
        now.first = before->second.first;
      }
      present.emplace(labelled.id, now);
    }
    people = std::move(present);
    if (sightings.empty()) continue;
    const std::vector<Found> found = eyes.find(frame, sightings);
    for (std::size_t at = 0; at < found.size(); ++at) {
      result.overlap += tracking::overlap(found[at].box, wanted[at]);
      result.standing += tracking::overlap(sightings[at].last, wanted[at]);
      ++result.predictions;
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  result.frames = info.length - first + 1;
  result.seconds = taken.count();
  return result;
}

int SiameseCheckpoint::best_epoch() const {
  return int(std::min_element(judged.begin(), judged.end()) - judged.begin());
}

bool SiameseCheckpoint::settled(int patience) const { return int(judged.size()) - 1 - best_epoch() >= patience; }

SiameseCheckpoint untrained(SiameseNetwork& network, const PictureFiles& files,
                            const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options) {
  const double judged = judge_epoch(network, files, videos, options).judged;
  return {.objectives = {}, .judged = {judged}, .network = {}, .best = network.state_dictionary()};
}

void train(SiameseNetwork& network, SiameseCheckpoint& state, const PictureFiles& files,
           const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options,
           const SiameseWatch& watch) {
  while (int(state.objectives.size()) < options.epochs && !state.settled(options.patience)) {
    const SiameseEpoch epoch = train_epoch(network, files, videos, options, watch.frame);
    state.objectives.push_back(epoch.objective);
    state.judged.push_back(epoch.judged);
    if (state.best_epoch() == int(state.objectives.size())) state.best = network.state_dictionary();
    if (watch.epoch) watch.epoch();
  }
}

namespace {
constexpr const char* checkpoint_format = "unshuffle siamese training 2";
}

// One line of JSON, then the two networks as torch writes them.
std::string to_bytes(const SiameseCheckpoint& checkpoint, const std::string& belongs_to) {
  const nlohmann::ordered_json head{{"format", checkpoint_format},
                                    {"belongs_to", as_utf8(belongs_to)},
                                    {"objectives", checkpoint.objectives},
                                    {"judged", checkpoint.judged},
                                    {"network_bytes", checkpoint.network.size()}};
  return with_checksum(json_text(head) + checkpoint.network + checkpoint.best);
}

SiameseCheckpoint checkpoint_from(const std::string& bytes, const std::string& source, const std::string& belongs_to) {
  if (!checksum_holds(bytes))
    throw BadData(
        fmt::format("{}: is not a checkpoint of a Siamese model's training, or damaged; remove it to begin "
                    "anew, or name another file",
                    source));
  try {
    const std::size_t end = bytes.find('\n');
    const auto head = read_json(bytes.substr(0, end), source);
    if (head.value("format", "") != checkpoint_format || end == std::string::npos) {
      throw BadData(fmt::format("{}: is not a checkpoint of a Siamese model's training", source));
    }
    const auto owner = head.at("belongs_to").get<std::string>();
    if (owner != as_utf8(belongs_to)) {
      throw BadData(fmt::format("{}: was written for other videos or options: {}; now: {}", source, owner, belongs_to));
    }
    const auto length = head.at("network_bytes").get<std::size_t>();
    if (length > bytes.size() - end - 1) throw BadData(fmt::format("{}: is cut short", source));
    SiameseCheckpoint checkpoint{head.at("objectives").get<std::vector<double>>(),
                                 head.at("judged").get<std::vector<double>>(), bytes.substr(end + 1, length),
                                 bytes.substr(end + 1 + length)};
    if (checkpoint.judged.size() != checkpoint.objectives.size() + 1) {
      throw BadData(fmt::format("{}: has {} objectives and {} judgements", source, checkpoint.objectives.size(),
                                checkpoint.judged.size()));
    }
    return checkpoint;
  } catch (const nlohmann::json::exception& error) {
    throw BadData(fmt::format("{}: is not a checkpoint of a Siamese model's training: {}", source, error.what()));
  }
}

}  // namespace unshuffle::pixels
