#include "train_siamese.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "core/peak_memory.hpp"
#include "progress.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tables/table.hpp"
#include "unshuffle/tracking/model_file.hpp"

namespace unshuffle::app {
namespace {

using Videos = std::vector<tracking::Detections>;

/// Of every video, if its links are to be learned from; else empty.
std::vector<tracking::Labels> truth_of(const TrainTrackerCommand& command, const Videos& videos) {
  std::vector<tracking::Labels> truth;
  for (std::size_t at = 0; at < videos.size() && command.true_links; ++at) {
    const auto path = std::filesystem::path(command.tracker.sequences[at]) / "gt" / "gt.txt";
    truth.push_back(tracking::read_labels(path.string(), videos[at].info.length));
  }
  return truth;
}

pixels::Learning learning_of(const TrainTrackerCommand& command) {
  return {command.frozen, command.layers, decoding_named(command.decoding)};
}

pixels::SiameseTrainOptions to_options(const TrainTrackerCommand& command, const Videos& videos) {
  pixels::SiameseTrainOptions options;
  options.epochs = command.training.epochs;
  options.hold_out = command.hold_out;
  options.hold_back = command.hold_back;
  options.patience = command.training.patience;
  options.batch = command.training.batch;
  options.learning_rate = command.training.learning_rate;
  options.links = {command.training.epsilon, command.training.unmatched, command.rho};
  options.likeness = likeness_named(command.likeness);
  options.truth = truth_of(command, videos);
  options.tracker = to_tracker_options(command.tracker);
  options.tracker.camera = false;  // Pictures show the camera's motion by themselves.
  pixels::validate(options);
  return options;
}

std::unique_ptr<pixels::SiameseNetwork> first_network(const TrainTrackerCommand& command, const Videos& videos) {
  if (!command.start.empty()) return pixels::load_network(command.start, learning_of(command));
  auto network =
      pixels::make_network({pixels::scaled_channels(command.width), learning_of(command), command.training.seed});
  pixels::prepare(*network, pixels::picture_files(), videos);
  return network;
}

/// Over the frames held out of all videos whose truth is known.
pixels::Foresight foresee(pixels::SiameseNetwork& network, const TrainTrackerCommand& command, const Videos& videos) {
  pixels::Foresight all;
  for (std::size_t at = 0; at < videos.size() && command.hold_out > 0; ++at) {
    const auto truth = std::filesystem::path(command.tracker.sequences[at]) / "gt" / "gt.txt";
    if (!std::filesystem::exists(truth)) continue;
    const auto labels = tracking::read_labels(truth.string(), videos[at].info.length);
    pixels::Film film(pixels::picture_files(), videos[at].info);
    all += pixels::foresight(network, film, labels, command.hold_out, likeness_named(command.likeness));
  }
  return all;
}

std::string mark_of(const TrainTrackerCommand& command, const Videos& videos,
                    const pixels::SiameseTrainOptions& options) {
  tracking::TrainOptions marked = command.training;
  marked.tracker = options.tracker;
  return fmt::format(
      "{}, {}, width {}, frozen {}, layers {}, decoding {}, target {}, rho {}, true links {}, hold-out {}, "
      "hold-back {}, start {}",
      tracking::fingerprint(videos, marked, 0), command.model, command.width, command.frozen,
      fmt::join(command.layers, " "), command.decoding, command.likeness, command.rho, command.true_links,
      command.hold_out, command.hold_back, command.start);
}

void train(pixels::SiameseNetwork& network, pixels::SiameseCheckpoint& state, const TrainTrackerCommand& command,
           const Videos& videos, const pixels::SiameseTrainOptions& options, const std::string& mark) {
  const int frames = pixels::frames_per_epoch(videos, options);
  const auto progress = progress_bar(command.quiet);
  const auto show = [&](int done) {
    if (progress) (void)progress(double(state.objectives.size()) * frames + done, double(options.epochs) * frames);
  };
  const auto keep = [&] {
    if (command.checkpoint.empty()) return;
    state.network = network.checkpoint();
    write_whole_file(command.checkpoint, pixels::to_bytes(state, mark));
  };
  pixels::train(network, state, pixels::picture_files(), videos, options, {show, keep});
}

pixels::SiameseCheckpoint first_state(pixels::SiameseNetwork& network, const TrainTrackerCommand& command,
                                      const Videos& videos, const pixels::SiameseTrainOptions& options,
                                      const std::string& mark) {
  if (command.resume && std::filesystem::exists(command.checkpoint)) {
    auto state = pixels::checkpoint_from(read_file(command.checkpoint), command.checkpoint, mark);
    network.restore(state.network, command.checkpoint);
    return state;
  }
  return pixels::untrained(network, pixels::picture_files(), videos, options);
}

void print_course(const pixels::SiameseCheckpoint& state, int frames) {
  fmt::print("{} epochs of {} frames, objective per pair {:.4f} -> {:.4f}\n", state.objectives.size(), frames,
             state.objectives.front(), state.objectives.back());
  fmt::print("Held back: objective per pair {:.4f} untrained -> {:.4f} after epoch {}, which is kept\n",
             state.judged.front(), state.judged[std::size_t(state.best_epoch())], state.best_epoch());
}

void print_foresight(const pixels::Foresight& before, const pixels::Foresight& after) {
  const double count = after.predictions;
  fmt::print(
      "Held out, {} predictions: IoU with the truth {:.4f} untrained -> {:.4f} trained, {:.4f} for boxes that stay; "
      "{:.0f} ms per frame\n",
      count, before.overlap / count, after.overlap / count, after.standing / count,
      1000 * after.seconds / after.frames);
}

std::string course_csv(const pixels::SiameseCheckpoint& state) {
  std::string out = "epoch,objective,held_back\n";
  for (std::size_t at = 0; at < state.objectives.size(); ++at) {
    out += fmt::format("{},", at + 1);
    append_number(out, state.objectives[at]);
    out += ',';
    append_number(out, state.judged[at + 1]);
    out += '\n';
  }
  return out;
}

}  // namespace

bool uses_pictures(const std::string& model) { return model == "siamese" || model == "nanotrack"; }

pixels::Decoding decoding_named(const std::string& name) {
  return name == "mean" ? pixels::Decoding::mean : pixels::Decoding::best;
}

pixels::Likeness likeness_named(const std::string& name) {
  return name == "last" ? pixels::Likeness::last : pixels::Likeness::first;
}

void add_seeing_options(CLI::App& command, std::string& decoding, std::string& likeness) {
  command
      .add_option("--decoding", decoding,
                  "Siamese models: best: the box of the best place; mean: of it and its neighbours, weighted by score, "
                  "so that scores learn too.")
      ->check(CLI::IsMember({"best", "mean"}))
      ->capture_default_str();
  command
      .add_option("--target", likeness,
                  "Siamese models: look for a track as it was in its first frame, or in the last one.")
      ->check(CLI::IsMember({"first", "last"}))
      ->capture_default_str();
}

int train_siamese(const TrainTrackerCommand& command) {
  const Videos videos = load_videos(command.tracker.sequences, command.quiet);
  const pixels::SiameseTrainOptions options = to_options(command, videos);
  const int frames = pixels::frames_per_epoch(videos, options);
  const auto network = first_network(command, videos);
  const pixels::Foresight before = foresee(*network, command, videos);
  const std::string mark = mark_of(command, videos, options);
  pixels::SiameseCheckpoint state = first_state(*network, command, videos, options, mark);
  const std::size_t resumed = state.objectives.size();
  const auto begin = std::chrono::steady_clock::now();
  train(*network, state, command, videos, options, mark);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  write_whole_file(command.out, state.best);
  if (!command.trace.empty()) write_whole_file(command.trace, course_csv(state));
  if (command.quiet) return 0;
  if (command.verbose) print_epochs(state.objectives);
  fmt::print("{} parameters, ", network->parameter_count());
  print_course(state, frames);
  if (state.objectives.size() > resumed) {
    fmt::print("Training took {:.0f} ms per frame\n",
               1000 * taken.count() / (double(state.objectives.size() - resumed) * frames));
  }
  if (before.predictions > 0) {
    print_foresight(before, foresee(*pixels::load_network(command.out, learning_of(command)), command, videos));
  }
  fmt::print("{:.0f} MB at the peak\nWrote {}\n", peak_memory_mb(), command.out);
  return 0;
}

}  // namespace unshuffle::app
