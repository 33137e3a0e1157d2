#include "track_motion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "progress.hpp"
#include "say.hpp"
#include "unshuffle/tracking/support.hpp"

namespace unshuffle::app {
namespace {

using tracking::CameraUse;
using Clock = std::chrono::steady_clock;

// Of a video that trains its own model the last third is held back, to try the terms of the model on.
constexpr double held_back_share = 1.0 / 3;

bool is_built_in(const std::string& model) { return model == "identity" || model == "constant-velocity"; }

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

tracking::Detections first_frames(const tracking::Detections& video, int count) {
  tracking::Detections first = video;
  first.frames.resize(std::size_t(count));
  first.info.length = count;
  return first;
}

/// The model after training on the frames before `end`.
tracking::MotionModel adapted(const tracking::Detections& video, const tracking::MotionModel& start, int end,
                              const tracking::TrainOptions& options, const MotionCommand& command) {
  if (!command.quiet) say(fmt::format("{}: training on its first {} frames\n", video.info.name, end - 1));
  const auto begin = Clock::now();
  tracking::TrainState state(start);
  const auto progress = progress_bar(command.quiet);
  if (progress) (void)progress(0, options.epochs);
  tracking::train(state, {first_frames(video, end - 1)}, options, [&](const tracking::TrainState& now) {
    if (progress) (void)progress(now.settled ? options.epochs : now.epochs(), options.epochs);
    return true;
  });
  if (!command.quiet) {
    say(fmt::format("{}: {}; {:.1f} s\n", video.info.name, training_outcome(state), seconds_since(begin)));
  }
  return state.best;
}

CameraUse camera_use(const tracking::SavedModel& saved, const MotionCommand& command) {
  if (command.camera == "on") return CameraUse::on;
  const bool possible = is_built_in(command.model) || saved.camera || command.adapt;
  return command.camera == "auto" && possible ? CameraUse::tried : CameraUse::off;
}

void report_trials(const std::string& name, const std::vector<tracking::TermTrial>& trials, bool verbose) {
  if (trials.empty()) return;
  std::vector<std::string> used;
  std::vector<std::string> unused;
  for (const tracking::TermTrial& trial : trials) (trial.used ? used : unused).push_back(trial.term);
  std::string text = name + ": ";
  if (!used.empty()) text += fmt::format("its frames support {}", fmt::join(used, ", "));
  if (!unused.empty()) {
    text += fmt::format("{}not used, as its frames do not support it: {}", used.empty() ? "" : "; ",
                        fmt::join(unused, ", "));
  }
  say(text + "\n");
  if (!verbose) return;
  for (const tracking::TermTrial& trial : trials) {
    fmt::print(
        "  {}: objective {:.4f} without, {:.4f} with it; {:+.1f} standard errors one frame ahead, {:+.1f} five\n",
        trial.term, trial.without, trial.with, trial.one_ahead, trial.five_ahead);
  }
}

/// The model as far as the video supports it.
tracking::Supported terms_for(const tracking::Detections& video, const tracking::SavedModel& saved,
                              const tracking::TrainOptions& options, const MotionCommand& command) {
  const bool all = command.terms == "all";
  tracking::Candidate candidate{.model = saved.model, .camera = camera_use(saved, command)};
  if (is_built_in(command.model)) candidate.fallback = saved.model;
  if (command.adapt) {
    const auto frames = static_cast<int>(video.frames.size());
    const int held_back = all ? 0 : static_cast<int>(held_back_share * frames);
    candidate.first_frame = frames - held_back + 1;
    candidate.model = adapted(video, saved.model, candidate.first_frame, options, command);
  }
  if (all) {
    const bool camera =
        candidate.camera == CameraUse::on || (candidate.camera == CameraUse::tried && (saved.camera || command.adapt));
    return {candidate.model, camera, {}};
  }
  tracking::Supported supported = tracking::supported_terms(video, candidate, options);
  if (!command.quiet) report_trials(video.info.name, supported.trials, command.verbose);
  return supported;
}

}  // namespace

Tracked with_time(const std::function<std::vector<std::vector<tracking::LabelledBox>>()>& track) {
  const auto begin = Clock::now();
  Tracked tracked{track(), 0};
  tracked.seconds = seconds_since(begin);
  return tracked;
}

Tracked track_by_motion(const tracking::Detections& video, const tracking::SavedModel& saved,
                        tracking::TrackerOptions options, const MotionCommand& command) {
  tracking::TrainOptions training = command.training;
  training.tracker = options;
  training.tracker.camera = camera_use(saved, command) != CameraUse::off;
  const tracking::Supported choice = terms_for(video, saved, training, command);
  options.camera = choice.camera;
  return with_time([&] { return tracking::track(video, choice.model, options); });
}

}  // namespace unshuffle::app
