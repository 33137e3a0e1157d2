#include "unshuffle/tracking/support.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unshuffle::tracking {
namespace {

// Of every twelve frames four are hidden, then the next is judged; three shifts of that pattern are tried.
constexpr std::size_t blackout_period = 12;
constexpr std::size_t blackout_length = 4;
constexpr std::size_t blackout_shifts = 3;
// A detection without any track to compare it with costs as much as one beside a box that does not touch it.
constexpr double unexplained = 0.5;
// One-sided five per cent. On the eleven videos of docs/results/tracking.md this keeps the camera out of all static
// ones, and keeps out the learnt steps that would cost 8 points of MOTA on ETH-Bahnhof.
constexpr double enough_errors = 1.645;
// More frames than this sharpen the answer little; choosing is to cost less than tracking a long video.
constexpr std::size_t most_frames_tried = 600;
// Nor do more boxes in a frame than this; the objective looks at all pairs.
constexpr double most_boxes_tried = 500;

/// A model and whether the camera is followed.
struct Setting {
  MotionModel model;
  bool camera;
};

/// Objectives of frames, and how many detections they are of.
struct Objectives {
  std::vector<double> values;
  double detections = 0;
};

/// Keeps the detections in the middle of the others, so many of them as are tried.
void keep_the_middle(Detections& video) {
  std::vector<double> across, down;
  for (const auto& frame : video.frames)
    for (const Detection& detection : frame) {
      across.push_back(detection.box.center_x());
      down.push_back(detection.box.center_y());
    }
  const double share = std::sqrt(most_boxes_tried * double(video.frames.size()) / double(across.size()));
  if (!(share < 1)) return;
  const auto quantile = [](std::vector<double>& values, double level) {
    const auto at = values.begin() + std::ptrdiff_t(level * double(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  const double left = quantile(across, (1 - share) / 2), right = quantile(across, (1 + share) / 2);
  const double top = quantile(down, (1 - share) / 2), bottom = quantile(down, (1 + share) / 2);
  for (auto& frame : video.frames)
    std::erase_if(frame, [&](const Detection& detection) {
      const double x = detection.box.center_x(), y = detection.box.center_y();
      return x < left || x > right || y < top || y > bottom;
    });
}

/// The end of the video with trusted detections only, which then all count alike.
Detections trial_video(const Detections& video, int first_frame, const TrackerOptions& options) {
  const Confidence confidence = Confidence::of(video.frames);
  Detections trial{video.info, video.frames, {}};
  const std::size_t held_back = trial.frames.size() - std::min(trial.frames.size(), std::size_t(first_frame) - 1);
  const std::size_t kept = std::min(held_back, most_frames_tried);
  trial.frames.erase(trial.frames.begin(), trial.frames.end() - std::ptrdiff_t(kept));
  for (auto& frame : trial.frames) {
    std::erase_if(frame, [&](const Detection& detection) {
      return detection.confidence < options.least_confidence || confidence(detection.confidence) < options.trust.match;
    });
    for (Detection& detection : frame) detection.confidence = 1;
  }
  keep_the_middle(trial);
  trial.info.length = static_cast<int>(trial.frames.size());
  return trial;
}

/// Adds the objectives of the frames for which `judged` holds.
template <class Judged>
void add_objectives(Objectives& sum, const Detections& video, const Setting& setting, TrainOptions options,
                    const Judged& judged) {
  options.tracker.camera = setting.camera;
  options.tracker.camera_options.cross_fitted = true;
  sum.values.resize(video.frames.size());
  std::vector<double> values(video.frames.size());
  for (std::size_t at = 0; at < values.size(); ++at) values[at] = unexplained * double(video.frames[at].size());
  for (const TrainFrame& frame : frames_of(video, setting.model, options.tracker)) {
    const std::size_t at = std::size_t(frame.number) - 1;
    if (!judged(at)) continue;
    const double beyond = double(frame.detections.size()) - double(frame.tracks.size());
    values[at] = frame_objective(frame, setting.model, options) + unexplained * std::max(0.0, beyond);
  }
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (!judged(at)) continue;
    sum.values[at] += values[at];
    sum.detections += double(video.frames[at].size());
  }
}

Objectives one_ahead(const Detections& video, const Setting& setting, const TrainOptions& options) {
  Objectives sum;
  add_objectives(sum, video, setting, options, [](std::size_t) { return true; });
  return sum;
}

Objectives five_ahead(const Detections& video, const Setting& setting, const TrainOptions& options) {
  Objectives sum;
  for (std::size_t turn = 0; turn < blackout_shifts; ++turn) {
    const auto phase = [turn](std::size_t at) {
      return (at + turn * blackout_period / blackout_shifts) % blackout_period;
    };
    Detections hidden = video;
    for (std::size_t at = 0; at < hidden.frames.size(); ++at) {
      if (phase(at) < blackout_length) hidden.frames[at].clear();
    }
    add_objectives(sum, hidden, setting, options, [&](std::size_t at) { return phase(at) == blackout_length; });
  }
  return sum;
}

/// Both objectives of a setting.
struct Trial {
  Setting setting;
  Objectives one;
  Objectives five;
  [[nodiscard]] double total() const {
    const auto mean = [](const Objectives& all) {
      return std::accumulate(all.values.begin(), all.values.end(), 0.0) / std::max(1.0, all.detections);
    };
    return mean(one) + mean(five);
  }
};

Trial tried(const Detections& video, const Setting& setting, const TrainOptions& options) {
  return {setting, one_ahead(video, setting, options), five_ahead(video, setting, options)};
}

/// Mean difference of paired frames in its standard errors; 0 where there is none.
double errors_apart(const Objectives& with, const Objectives& without) {
  const auto count = double(with.values.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t at = 0; at < with.values.size(); ++at) {
    const double difference = with.values[at] - without.values[at];
    sum += difference;
    squares += difference * difference;
  }
  const double variance = squares - sum * sum / std::max(1.0, count);
  return variance > 0 ? sum / std::sqrt(variance) : 0;
}

/// `model` with the parameters from `first` on, `count` of them, of another one.
MotionModel with_parameters(const MotionModel& model, const MotionModel& other, Index first, Index count) {
  Vector values = model.values();
  values.segment(first, count) = other.values().segment(first, count);
  MotionModel mixed;
  mixed.set_values(values);
  return mixed;
}

/// What could be added to the current setting, in the order in which it is tried.
std::vector<std::string> terms_of(const Candidate& candidate) {
  std::vector<std::string> terms;
  if (candidate.camera == CameraUse::tried) terms.emplace_back("camera");
  const bool same_shape = candidate.model.hidden() == 0 && candidate.fallback.hidden() == 0;
  if (!same_shape) {
    terms.emplace_back("model");
  } else if (candidate.model.values() != candidate.fallback.values()) {
    terms.insert(terms.end(), {"steps", "place"});
  }
  return terms;
}

Setting with_term(const Setting& now, const std::string& term, const MotionModel& model) {
  constexpr Index place_size = 9;  // Three inputs of three outputs each; the steps follow.
  constexpr Index steps_size = 18;
  if (term == "camera") return {now.model, true};
  if (term == "model") return {model, now.camera};
  if (term == "place") return {with_parameters(now.model, model, 0, place_size), now.camera};
  return {with_parameters(now.model, model, place_size, steps_size), now.camera};
}

}  // namespace

Supported supported_terms(const Detections& video, const Candidate& candidate, const TrainOptions& options) {
  const Detections trial = trial_video(video, candidate.first_frame, options.tracker);
  const std::vector<std::string> terms = terms_of(candidate);
  Supported supported{candidate.fallback, candidate.camera == CameraUse::on, {}};
  if (terms.empty()) return supported;
  Trial now = tried(trial, {supported.model, supported.camera}, options);
  for (const std::string& term : terms) {
    const Trial next = tried(trial, with_term(now.setting, term, candidate.model), options);
    TermTrial outcome{term, now.total(), next.total(), errors_apart(next.one, now.one),
                      errors_apart(next.five, now.five)};
    // Through hidden frames nothing can be known of the camera, so there it must only do no harm.
    const double limit = term == "camera" ? 0 : -enough_errors;
    outcome.used = outcome.one_ahead < -enough_errors && outcome.five_ahead < limit;
    if (outcome.used) now = next;
    supported.trials.push_back(outcome);
  }
  supported.model = now.setting.model;
  supported.camera = now.setting.camera;
  return supported;
}

}  // namespace unshuffle::tracking
