#include "train_siamese.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "fit/peak_memory.hpp"
#include "progress.hpp"
#include "unshuffle/data/output_file.hpp"
#include "unshuffle/data/table.hpp"
#include "unshuffle/error.hpp"
#include "unshuffle/tracking/model_file.hpp"

namespace unshuffle::app {
namespace {

using Videos = std::vector<tracking::Detections>;

pixels::SiameseTrainOptions to_options(const TrainTrackerCommand& command) {
  pixels::SiameseTrainOptions options;
  options.epochs = command.training.epochs;
  options.hold_out = command.hold_out;
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

}  // namespace

int train_siamese(const TrainTrackerCommand& command) {
  const pixels::SiameseTrainOptions options = to_options(command);
  const Videos videos = load_videos(command.tracker.sequences, command.quiet);
  const int frames = pixels::frames_per_epoch(videos, options);
  const auto network = first_network(command, videos);
  const pixels::Foresight before = foresee(*network, command, videos);

  tracking::TrainOptions marked = command.training;
  marked.tracker = options.tracker;
  const std::string mark =
      fmt::format("{}, siamese, width {}, frozen {}, hold-out {}, start {}", tracking::fingerprint(videos, marked, 0),
                  command.width, command.frozen, command.hold_out, command.start);
  std::vector<double> objectives;
  if (command.resume && std::filesystem::exists(command.checkpoint)) {
    auto kept = pixels::checkpoint_from(read_file(command.checkpoint), command.checkpoint, mark);
    network->restore(kept.network, command.checkpoint);
    objectives = std::move(kept.objectives);
  }
  const auto progress = progress_bar(command.quiet);
  const std::size_t resumed = objectives.size();
  const auto begin = std::chrono::steady_clock::now();
  while (int(objectives.size()) < options.epochs) {
    objectives.push_back(pixels::train_epoch(*network, pixels::picture_files(), videos, options, [&](int done) {
      if (progress) (void)progress(double(objectives.size()) * frames + done, double(options.epochs) * frames);
    }));
    if (!command.checkpoint.empty()) {
      write_whole_file(command.checkpoint, pixels::to_bytes({objectives, network->checkpoint()}, mark));
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  write_whole_file(command.out, network->state_dictionary());
  if (!command.trace.empty()) write_whole_file(command.trace, trace_csv(objectives));
  if (command.quiet) return 0;
  if (command.verbose) print_epochs(objectives);
  fmt::print("{} parameters, {} epochs of {} frames, objective per pair {:.4f} -> {:.4f}\n", network->parameter_count(),
             objectives.size(), frames, objectives.front(), objectives.back());
  if (objectives.size() > resumed) {
    fmt::print("Training took {:.0f} ms per frame\n",
               1000 * taken.count() / (double(objectives.size() - resumed) * frames));
  }
  if (before.predictions > 0) {
    const pixels::Foresight after = foresee(*network, command, videos);
    const double count = after.predictions;
    fmt::print(
        "Held out, {} predictions: IoU with the truth {:.4f} untrained -> {:.4f} trained, {:.4f} for boxes that "
        "stay; {:.0f} ms per frame\n",
        count, before.overlap / count, after.overlap / count, after.standing / count,
        1000 * after.seconds / after.frames);
  }
  fmt::print("{:.0f} MB at the peak\nWrote {}\n", peak_memory_mb(), command.out);
  return 0;
}

}  // namespace unshuffle::app
