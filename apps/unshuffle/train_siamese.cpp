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

pixels::SiameseTrainOptions to_options(const TrainTrackerCommand& command) {
  pixels::SiameseTrainOptions options;
  options.epochs = command.training.epochs;
  options.hold_out = command.hold_out;
  options.hold_back = command.hold_back;
  options.patience = command.training.patience;
  options.batch = command.training.batch;
  options.learning_rate = command.training.learning_rate;
  options.links = {command.training.epsilon, command.training.unmatched};
  options.tracker = to_tracker_options(command.tracker);
  options.tracker.camera = false;  // Pictures show the camera's motion by themselves.
  pixels::validate(options);
  return options;
}

std::unique_ptr<pixels::SiameseNetwork> first_network(const TrainTrackerCommand& command, const Videos& videos) {
  if (!command.start.empty()) return pixels::load_network(command.start, command.frozen);
  auto network = pixels::make_network({pixels::scaled_channels(command.width), command.frozen, command.training.seed});
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
    all += pixels::foresight(network, pixels::picture_files(), videos[at].info, labels, command.hold_out);
  }
  return all;
}

std::string mark_of(const TrainTrackerCommand& command, const Videos& videos,
                    const pixels::SiameseTrainOptions& options) {
  tracking::TrainOptions marked = command.training;
  marked.tracker = options.tracker;
  return fmt::format("{}, siamese, width {}, frozen {}, hold-out {}, hold-back {}, start {}",
                     tracking::fingerprint(videos, marked, 0), command.width, command.frozen, command.hold_out,
                     command.hold_back, command.start);
}

/// Continues until the last epoch, or until `patience` epochs without improvement.
void train(pixels::SiameseNetwork& network, pixels::SiameseCheckpoint& state, const TrainTrackerCommand& command,
           const Videos& videos, const pixels::SiameseTrainOptions& options, const std::string& mark) {
  const int frames = pixels::frames_per_epoch(videos, options);
  const auto progress = progress_bar(command.quiet);
  while (int(state.objectives.size()) < options.epochs && !state.settled(options.patience)) {
    const auto epoch = pixels::train_epoch(network, pixels::picture_files(), videos, options, [&](int done) {
      if (progress) (void)progress(double(state.objectives.size()) * frames + done, double(options.epochs) * frames);
    });
    state.objectives.push_back(epoch.objective);
    state.judged.push_back(epoch.judged);
    if (state.best_epoch() == int(state.objectives.size())) state.best = network.state_dictionary();
    if (command.checkpoint.empty()) continue;
    state.network = network.checkpoint();
    write_whole_file(command.checkpoint, pixels::to_bytes(state, mark));
  }
}

pixels::SiameseCheckpoint first_state(pixels::SiameseNetwork& network, const TrainTrackerCommand& command,
                                      const Videos& videos, const pixels::SiameseTrainOptions& options,
                                      const std::string& mark) {
  if (command.resume && std::filesystem::exists(command.checkpoint)) {
    auto state = pixels::checkpoint_from(read_file(command.checkpoint), command.checkpoint, mark);
    network.restore(state.network, command.checkpoint);
    return state;
  }
  const double untrained = pixels::judge_epoch(network, pixels::picture_files(), videos, options).judged;
  return {.objectives = {}, .judged = {untrained}, .network = {}, .best = network.state_dictionary()};
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

int train_siamese(const TrainTrackerCommand& command) {
  const pixels::SiameseTrainOptions options = to_options(command);
  const Videos videos = load_videos(command.tracker.sequences, command.quiet);
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
    print_foresight(before, foresee(*pixels::load_network(command.out, command.frozen), command, videos));
  }
  fmt::print("{:.0f} MB at the peak\nWrote {}\n", peak_memory_mb(), command.out);
  return 0;
}

}  // namespace unshuffle::app
