// unshuffle track: detections of videos in, boxes with identities out.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "commands.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "course.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "say.hpp"
#include "tracker_options.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/pixels/siamese.hpp"
#include "unshuffle/tracking/model_file.hpp"
#include "unshuffle/tracking/sort.hpp"

namespace unshuffle::app {
namespace {

using Frames = std::vector<std::vector<tracking::LabelledBox>>;

struct TrackCommand {
  TrackerCommand tracker;
  tracking::TrainOptions training;
  std::string kind = "motion";
  std::string model = "constant-velocity";
  std::string camera = "auto";
  std::string out;
  std::string draw;
  bool adapt = false;
  bool quiet = false;
  bool verbose = false;
  int threads = 0;
  CLI::Option* model_given = nullptr;
};

tracking::SortOptions to_sort_options(const TrackerCommand& tracker) {
  tracking::SortOptions options;
  if (tracker.least_overlap_given->count() > 0) options.least_overlap = tracker.options.least_overlap;
  if (tracker.death_given->count() > 0) options.longest_absence = tracker.options.longest_absence;
  if (tracker.birth_wait_given->count() > 0) options.least_hits = tracker.options.birth_wait;
  options.least_confidence = tracker.options.least_confidence;
  return options;
}

Frames run_motion(const tracking::Detections& video, const tracking::SavedModel& saved, const TrackCommand& command) {
  tracking::TrackerOptions options = to_tracker_options(command.tracker);
  options.camera = command.camera == "on" || (command.camera == "auto" && (saved.camera || command.adapt));
  tracking::MotionModel model = saved.model;
  if (command.adapt) {
    tracking::TrainOptions training = command.training;
    training.tracker = options;
    tracking::TrainState state(model);
    const auto progress = progress_bar(command.quiet);
    tracking::train(state, {video}, training, [&](const tracking::TrainState& now) {
      if (progress) (void)progress(now.settled ? training.epochs : now.epochs(), training.epochs);
      return true;
    });
    model = state.best;
  }
  return tracking::track(video, model, options);
}

Frames run_siamese(const tracking::Detections& video, pixels::SiameseNetwork& network, const TrackCommand& command) {
  tracking::TrackerOptions options = to_tracker_options(command.tracker);
  options.camera = command.camera == "on";  // Pictures show the camera's motion by themselves.
  pixels::Film film(pixels::picture_files(), video.info);
  return tracking::track(video, tracking::MotionModel::constant_velocity(), options,
                         std::make_shared<pixels::SiameseEyes>(network, film));
}

/// What --draw names for one video, or for each of several: a folder, or a video when it ends in .mp4 or .avi.
std::string drawing_of(const TrackCommand& command, const std::string& name) {
  if (command.tracker.sequences.size() == 1) return command.draw;
  const std::filesystem::path given(command.draw);
  if (given.extension() != ".mp4" && given.extension() != ".avi") return (given / name).string();
  return (given.parent_path() / (given.stem().string() + "-" + name + given.extension().string())).string();
}

void refuse_drawing_over_pictures(const TrackCommand& command, const tracking::SequenceInfo& info) {
  std::error_code other_folder;
  const std::string drawing = drawing_of(command, file_name_for(info.name));
  if (!std::filesystem::equivalent(drawing, info.pictures, other_folder)) return;
  throw InvalidInput(
      fmt::format("--draw {} would overwrite the pictures of {}; name another folder", drawing, info.name));
}

/// A line per identity.
std::string tracks_of(const Frames& frames) {
  struct Track {
    std::size_t first = 0, last = 0, boxes = 0;
  };
  std::map<long, Track> tracks;
  for (std::size_t frame = 0; frame < frames.size(); ++frame) {
    for (const auto& box : frames[frame]) {
      Track& track = tracks[box.id];
      if (track.boxes++ == 0) track.first = frame + 1;
      track.last = frame + 1;
    }
  }
  std::string out = fmt::format("{:>8} {:>12} {:>11} {:>7}\n", "id", "first frame", "last frame", "boxes");
  for (const auto& [id, track] : tracks)
    out += fmt::format("{:>8} {:>12} {:>11} {:>7}\n", id, track.first, track.last, track.boxes);
  return out;
}

using Method = std::function<Frames(const tracking::Detections&)>;

Method method_of(const TrackCommand& command) {
  if (command.kind == "sort") {
    return [options = to_sort_options(command.tracker)](const auto& video) {
      return tracking::track_by_sort(video, options);
    };
  }
  if (pixels::is_state_dictionary(command.model)) {
    if (command.adapt)
      throw InvalidInput("--adapt trains motion models only; train-tracker --model siamese trains others");
    const std::shared_ptr<pixels::SiameseNetwork> network = pixels::load_network(command.model, 0);
    return [network, &command](const auto& video) { return run_siamese(video, *network, command); };
  }
  return [saved = tracking::load_model(command.model), &command](const auto& video) {
    return run_motion(video, saved, command);
  };
}

int run(const TrackCommand& command) {
  require_threads(command.threads);
  const bool sort = command.kind == "sort";
  if (sort && (command.model_given->count() > 0 || command.adapt)) {
    throw InvalidInput("--tracker sort has a motion model of its own; --model and --adapt cannot be used with it");
  }
  if (sort) {
    tracking::validate(to_sort_options(command.tracker));
  } else {
    tracking::validate(to_tracker_options(command.tracker));
    tracking::validate(command.training);
  }
  use_threads(command.threads);
  const Method method = method_of(command);
  const auto videos = load_videos(command.tracker.sequences, command.quiet);
  if (!command.draw.empty()) {
    (void)pixels::picture_files();  // Fails now when it would fail after tracking.
    for (const tracking::Detections& video : videos) {
      tracking::require_pictures(video.info);
      refuse_drawing_over_pictures(command, video.info);
    }
  }
  make_folder(command.out);
  const auto result_of = [&](const tracking::Detections& video) {
    return (std::filesystem::path(command.out) / (file_name_for(video.info.name) + ".txt")).string();
  };
  std::vector<std::string> inputs = command.tracker.sequences;
  inputs.push_back(command.model);
  for (const tracking::Detections& video : videos) require_outputs({{"--out", result_of(video)}}, inputs);
  for (const tracking::Detections& video : videos) {
    const std::string path = result_of(video);
    const auto begin = std::chrono::steady_clock::now();
    const Frames frames = method(video);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    write_whole_file(path, tracking::to_mot(frames));
    const std::string drawing = command.draw.empty() ? "" : drawing_of(command, file_name_for(video.info.name));
    if (!drawing.empty()) pixels::draw_tracks(video.info, frames, drawing);
    if (command.quiet) continue;
    std::size_t boxes = 0;
    long last_id = 0;
    for (const auto& frame : frames) {
      boxes += frame.size();
      for (const auto& box : frame) last_id = std::max(last_id, box.id);
    }
    say(fmt::format("{}: {} frames, {} boxes, ids up to {}, {:.0f} frames/s\nWrote {}\n", video.info.name,
                    frames.size(), boxes, last_id, double(frames.size()) / std::max(taken.count(), 1e-9), path));
    if (!drawing.empty()) say(fmt::format("Drew {}\n", drawing));
    if (command.verbose) fmt::print("{}", tracks_of(frames));
  }
  return 0;
}

}  // namespace

Command add_track(CLI::App& root) {
  CLI::App* app = root.add_subcommand("track", "Give the detections of videos identities (MOTChallenge files).");
  const auto command = std::make_shared<TrackCommand>();
  add_tracker_options(*app, command->tracker);
  app->add_option("--tracker", command->kind, "motion: predict with a model, follow the camera; sort: SORT.")
      ->check(CLI::IsMember({"motion", "sort"}))
      ->capture_default_str();
  command->model_given =
      app->add_option("--model", command->model,
                      "identity, constant-velocity, or a file written by train-tracker; a Siamese model uses the "
                      "sequence's frames.")
          ->capture_default_str();
  app->add_flag("--adapt", command->adapt, "First train the model on each very video; needs no labels.");
  app->add_option("--camera", command->camera,
                  "Estimate the camera's motion in every frame; auto: as the model was trained, on with --adapt.")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app->add_option("--longest-gap", command->tracker.options.longest_gap,
                  "Gaps of recovered tracks up to this many frames are interpolated linearly; 0: none.")
      ->capture_default_str();
  app->add_option("--out", command->out, "Folder for SEQUENCE.txt: frame,id,left,top,width,height,-1,-1,-1,-1.")
      ->required();
  app->add_option(
      "--draw", command->draw,
      "Draw boxes with ids: a video if it ends in .mp4 or .avi, else a folder of pictures; on the sequence's "
      "frames or, without them, on blank ones. Needs the component opencv.");
  add_training_options(*app, command->training);
  app->add_option("--threads", command->threads, "0: all. The answer does not depend on it.")->capture_default_str();
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  add_verbose_option(*app, command->verbose, "Also print where every track begins and ends.");
  app->footer(
      "The options from --epochs to --seed apply only with --adapt.\n\n"
      "Example:\n"
      "  unshuffle train-tracker MOT15/train/ETH-Sunnyday --out sunnyday.json\n"
      "  unshuffle track MOT15/train/ETH-Sunnyday --model sunnyday.json --out results --draw sunnyday.mp4\n"
      "  unshuffle evaluate --gt MOT15/train --results results");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
