// unshuffle track: detections of videos in, boxes with identities out.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "commands.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "course.hpp"
#include "options.hpp"
#include "say.hpp"
#include "track_motion.hpp"
#include "train_siamese.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/pixels/siamese.hpp"
#include "unshuffle/tracking/sort.hpp"

namespace unshuffle::app {
namespace {

using Frames = std::vector<std::vector<tracking::LabelledBox>>;

struct TrackCommand {
  TrackerCommand tracker;
  MotionCommand motion;
  std::string kind = "motion";
  std::string out;
  std::string draw;
  std::string decoding = "best";
  std::string likeness = "first";
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

Frames run_siamese(const tracking::Detections& video, pixels::SiameseNetwork& network, const TrackCommand& command) {
  tracking::TrackerOptions options = to_tracker_options(command.tracker);
  options.camera = command.motion.camera == "on";  // Pictures show the camera's motion by themselves.
  network.decode(decoding_named(command.decoding));
  pixels::Film film(pixels::picture_files(), video.info);
  return tracking::track(video, tracking::MotionModel::constant_velocity(), options,
                         std::make_shared<pixels::SiameseEyes>(network, film, likeness_named(command.likeness)));
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

using Method = std::function<Tracked(const tracking::Detections&)>;

Method method_of(const TrackCommand& command) {
  if (command.kind == "sort") {
    return [options = to_sort_options(command.tracker)](const auto& video) {
      return with_time([&] { return tracking::track_by_sort(video, options); });
    };
  }
  const std::string& model = command.motion.model;
  if (pixels::is_state_dictionary(model)) {
    if (command.motion.adapt)
      throw InvalidInput("--adapt trains motion models only; train-tracker --model siamese or nanotrack trains others");
    const std::shared_ptr<pixels::SiameseNetwork> network = pixels::load_network(model);
    return [network, &command](const auto& video) {
      return with_time([&] { return run_siamese(video, *network, command); });
    };
  }
  return [saved = tracking::load_model(model), &command](const auto& video) {
    return track_by_motion(video, saved, to_tracker_options(command.tracker), command.motion);
  };
}

void require_options(const TrackCommand& command) {
  require_threads(command.threads);
  if (std::filesystem::path(command.out).extension() == ".txt" && !std::filesystem::is_directory(command.out)) {
    throw InvalidInput(fmt::format("--out {}: a folder was expected; it gets one SEQUENCE.txt per video", command.out));
  }
  if (command.kind != "sort") {
    tracking::validate(to_tracker_options(command.tracker));
    tracking::validate(command.motion.training);
    return;
  }
  if (command.model_given->count() > 0 || command.motion.adapt) {
    throw InvalidInput("--tracker sort has a motion model of its own; --model and --adapt cannot be used with it");
  }
  tracking::validate(to_sort_options(command.tracker));
}

/// Fails now when drawing would fail after tracking.
void require_drawings(const TrackCommand& command, const std::vector<tracking::Detections>& videos) {
  if (command.draw.empty()) return;
  (void)pixels::picture_files();
  for (const tracking::Detections& video : videos) {
    tracking::require_pictures(video.info);
    refuse_drawing_over_pictures(command, video.info);
  }
}

void report_tracks(const std::string& name, const Tracked& tracked, const std::string& path) {
  std::size_t boxes = 0;
  long last_id = 0;
  for (const auto& frame : tracked.frames) {
    boxes += frame.size();
    for (const auto& box : frame) last_id = std::max(last_id, box.id);
  }
  say(fmt::format("{}: {} frames, {} boxes, ids up to {}, {:.0f} frames/s\nWrote {}\n", name, tracked.frames.size(),
                  boxes, last_id, double(tracked.frames.size()) / std::max(tracked.seconds, 1e-9), path));
}

int run(const TrackCommand& command) {
  require_options(command);
  const bool quiet = command.motion.quiet;
  use_threads(command.threads);
  const Method method = method_of(command);
  const auto videos = load_videos(command.tracker.sequences, quiet);
  require_drawings(command, videos);
  make_folder(command.out);
  const auto result_of = [&](const tracking::Detections& video) {
    return (std::filesystem::path(command.out) / (file_name_for(video.info.name) + ".txt")).string();
  };
  std::vector<std::string> inputs = command.tracker.sequences;
  inputs.push_back(command.motion.model);
  for (const tracking::Detections& video : videos) require_outputs({{"--out", result_of(video)}}, inputs);
  for (const tracking::Detections& video : videos) {
    if (!quiet) note_confidence(video, command.tracker.options.least_confidence);
    const Tracked tracked = method(video);
    write_whole_file(result_of(video), tracking::to_mot(tracked.frames));
    const std::string drawing = command.draw.empty() ? "" : drawing_of(command, file_name_for(video.info.name));
    if (!drawing.empty()) pixels::draw_tracks(video.info, tracked.frames, drawing);
    if (quiet) continue;
    report_tracks(video.info.name, tracked, result_of(video));
    if (!drawing.empty()) say(fmt::format("Drew {}\n", drawing));
    if (command.motion.verbose) fmt::print("{}", tracks_of(tracked.frames));
  }
  return 0;
}

void add_appearance_options(CLI::App& app, TrackCommand& command) {
  tracking::AppearanceOptions& options = command.tracker.options.appearance;
  app.add_option("--appearance-share", options.share,
                 "Siamese models: share of their box in the prediction; a constant velocity has the rest.")
      ->capture_default_str();
  app.add_option("--survival-score", options.survival_score,
                 "Siamese models: a track without a detection lives on where it is found with this score; above 1: "
                 "none does.")
      ->capture_default_str();
  app.add_option("--longest-survival", options.longest_survival, "For at most so many frames.")->capture_default_str();
  add_seeing_options(app, command.decoding, command.likeness);
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
      app->add_option("--model", command->motion.model,
                      "identity, constant-velocity, or a file written by train-tracker; a Siamese model (SiamRPN, or "
                      "NanoTrack's published weights) uses the sequence's frames.")
          ->capture_default_str();
  add_appearance_options(*app, *command);
  app->add_flag("--adapt", command->motion.adapt,
                "First train the model, starting from --model, on two thirds of each very video; needs no labels.");
  app->add_option("--camera", command->motion.camera,
                  "Estimate the camera's motion in every frame; auto: if the video's frames support it.")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app->add_option("--terms", command->motion.terms,
                  "Use what the video's own frames support of the model and the camera, or all of it as trained.")
      ->check(CLI::IsMember({"supported", "all"}))
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
  add_training_options(*app, command->motion.training);
  app->add_option("--threads", command->threads, "0: all. The answer does not depend on it.")->capture_default_str();
  app->add_flag("--quiet", command->motion.quiet, "Print errors only.");
  add_verbose_option(*app, command->motion.verbose, "Also print where every track begins and ends.");
  app->footer(
      "The options from --epochs to --seed apply only with --adapt.\n\n"
      "Example:\n"
      "  unshuffle train-tracker MOT15/train/ETH-Sunnyday --out sunnyday.json\n"
      "  unshuffle track MOT15/train/ETH-Sunnyday --model sunnyday.json --out results --draw sunnyday.mp4\n"
      "  unshuffle evaluate --gt MOT15/train --results results");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
