// unshuffle train-tracker: trains a motion model from detections alone; the one for pixels is in train_siamese.cpp.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "core/threads.hpp"
#include "course.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "tracker_options.hpp"
#include "train_siamese.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tables/table.hpp"
#include "unshuffle/tracking/model_file.hpp"

namespace unshuffle::app {
namespace {

tracking::TrainState first_state(const TrainTrackerCommand& command) {
  if (!command.start.empty()) return tracking::TrainState(tracking::load_model(command.start).model);
  tracking::MotionModel model = tracking::MotionModel::constant_velocity(command.hidden);
  model.draw_hidden_weights(command.training.seed);
  return tracking::TrainState(model);
}

int train_motion_model(const TrainTrackerCommand& command) {
  tracking::TrainOptions options = command.training;
  options.tracker = to_tracker_options(command.tracker);
  options.tracker.camera = !command.no_camera;
  tracking::validate(options);
  const auto videos = load_videos(command.tracker.sequences, command.quiet);
  tracking::TrainState state = first_state(command);
  const std::string mark = tracking::fingerprint(videos, options, state.model.hidden()) + ", start " + command.start;
  if (command.resume && std::filesystem::exists(command.checkpoint)) {
    state = tracking::state_from_json(read_file(command.checkpoint), command.checkpoint, mark);
  }
  if (!command.quiet) {
    for (const tracking::Detections& video : videos) note_confidence(video, options.tracker.least_confidence);
  }
  const auto progress = progress_bar(command.quiet);
  if (progress) (void)progress(state.epochs(), options.epochs);
  tracking::train(state, videos, options, [&](const tracking::TrainState& now) {
    if (progress) (void)progress(now.settled ? options.epochs : now.epochs(), options.epochs);
    if (!command.checkpoint.empty()) write_whole_file(command.checkpoint, tracking::checkpoint_json(now, mark));
    return true;
  });
  tracking::SavedModel saved{
      .model = state.best, .camera = options.tracker.camera, .objective = state.objectives.back(), .trained_on = {}};
  for (const tracking::Detections& video : videos) saved.trained_on.push_back(video.info.name);
  write_whole_file(command.out, tracking::to_json(saved));
  if (!command.trace.empty()) write_whole_file(command.trace, trace_csv(state.objectives));
  if (command.verbose) print_epochs(state.objectives);
  if (!command.quiet) {
    fmt::print("{}\nWrote {}\n", training_outcome(state), command.out);
  }
  return 0;
}

const std::vector<std::string> options_of_boxes{"--hidden", "--no-camera", "--round"};
const std::vector<std::string> options_of_pixels{"--width",    "--frozen", "--layers",     "--decoding", "--target",
                                                 "--hold-out", "--rho",    "--true-links", "--hold-back"};

/// What is trained from scratch wants large steps; what is pretrained, small ones, and few.
void set_defaults(TrainTrackerCommand& command, const CLI::App& app) {
  const pixels::SiameseTrainOptions usual;
  const bool pretrained = command.model == "nanotrack";
  if (app.count("--learning-rate") == 0) command.training.learning_rate = pretrained ? 1e-4 : usual.learning_rate;
  if (app.count("--batch") == 0) command.training.batch = usual.batch;
  if (app.count("--patience") == 0) command.training.patience = usual.patience;
  if (pretrained && app.count("--epochs") == 0) command.training.epochs = 3;
}

void require_meaning_of_pixels(const TrainTrackerCommand& command, const CLI::App& app) {
  if (app.count("--start") > 0 && app.count("--width") > 0) {
    throw InvalidInput("--width cannot be used with --start: the network is as wide as its weights");
  }
  if (app.count("--rho") > 0 && app.count("--unmatched") > 0) {
    throw InvalidInput("--rho and --unmatched bound the same thing; give one of them");
  }
  if (command.model != "nanotrack") return;
  if (command.start.empty()) {
    throw InvalidInput(
        "--model nanotrack needs --start FILE, its pretrained weights (pretrained_nanotrackv2.pth or v3)");
  }
  if (app.count("--frozen") > 0) throw InvalidInput("--frozen is for --model siamese; --layers names what is trained");
}

int run(TrainTrackerCommand command, const CLI::App& app) {
  require_threads(command.threads);
  if (command.resume && command.checkpoint.empty())
    throw InvalidInput("--resume needs --checkpoint FILE to resume from");
  const bool siamese = uses_pictures(command.model);
  for (const std::string& option : siamese ? options_of_boxes : options_of_pixels) {
    if (app.count(option) > 0) {
      throw InvalidInput(fmt::format("{} cannot be used with --model {}", option, command.model));
    }
  }
  std::vector<std::string> inputs = command.tracker.sequences;
  inputs.push_back(command.start);
  require_outputs({{"--out", command.out}, {"--checkpoint", command.checkpoint}, {"--trace", command.trace}}, inputs);
  use_threads(command.threads);
  if (!siamese) return train_motion_model(command);
  require_meaning_of_pixels(command, app);
  set_defaults(command, app);
  return train_siamese(command);
}

void add_options_of_pixels(CLI::App& app, TrainTrackerCommand& command) {
  app.add_option("--width", command.width, "siamese: channels as a share of the published network's.")
      ->capture_default_str();
  app.add_option("--frozen", command.frozen, "siamese: keep this many leading convolutions of the backbone fixed.")
      ->capture_default_str();
  app.add_option("--layers", command.layers,
                 "siamese, nanotrack: train only parameters whose names begin so, as ban_head.bbox_pred or "
                 "backbone.features.8; several with commas. Default of nanotrack: its head.")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_seeing_options(app, command.decoding, command.likeness);
  app.add_option("--rho", command.rho,
                 "siamese, nanotrack: instead of --unmatched, the paper's bound of the squared deviation of sums.");
  app.add_flag("--true-links", command.true_links,
               "siamese, nanotrack: learn from the links of gt/gt.txt instead of lost ones; shows what losing them "
               "costs.");
  app.add_option("--hold-out", command.hold_out,
                 "siamese, nanotrack: do not train on the last N frames of each video; with gt/gt.txt, report how "
                 "well boxes are predicted there before and after.")
      ->capture_default_str();
  app.add_option("--hold-back", command.hold_back,
                 "siamese, nanotrack: share of the other frames, at the end, held back for validation; the epoch with "
                 "the lowest objective there is kept.")
      ->capture_default_str();
}

}  // namespace

void print_epochs(const std::vector<double>& objectives) {
  for (std::size_t at = 0; at < objectives.size(); ++at)
    fmt::print("epoch {:>4}: objective per pair {:.6f}\n", at + 1, objectives[at]);
}

std::string trace_csv(const std::vector<double>& objectives) {
  std::string out = "epoch,objective\n";
  for (std::size_t at = 0; at < objectives.size(); ++at) {
    out += fmt::format("{},", at + 1);
    append_number(out, objectives[at]);
    out += '\n';
  }
  return out;
}

Command add_train_tracker(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("train-tracker", "Learn how boxes move from detections alone, without identities.");
  const auto command = std::make_shared<TrainTrackerCommand>();
  add_tracker_options(*app, command->tracker);
  app->add_option(
         "--model", command->model,
         "boxes: a motion model; siamese: SiamRPN on the frames, nanotrack: NanoTrack from pretrained weights, "
         "both with the components torch and opencv.")
      ->check(CLI::IsMember({"boxes", "siamese", "nanotrack"}))
      ->capture_default_str();
  app->add_option("--hidden", command->hidden, "tanh units beside the linear part; 0: a linear model.")
      ->capture_default_str();
  app->add_flag("--no-camera", command->no_camera, "Do not compensate the camera's motion.");
  app->add_option("--start", command->start,
                  "Initial model: constant-velocity (default), identity or a file. siamese, nanotrack: a state "
                  "dictionary, as torch.save(model.state_dict(), FILE) writes it, or a checkpoint with one.");
  add_options_of_pixels(*app, *command);
  add_training_options(*app, command->training);
  const pixels::SiameseTrainOptions usual;
  app->get_option("--batch")->description(fmt::format("Frames per step (siamese, nanotrack: {}).", usual.batch));
  app->get_option("--learning-rate")
      ->description(
          fmt::format("Of Adam (siamese: {} for biases, a weight among n that are added up moves by 1/(100 n) of it; "
                      "nanotrack: 1e-4).",
                      usual.learning_rate));
  app->get_option("--patience")
      ->description(
          fmt::format("Epochs without improvement that end a round (siamese: without improvement on the frames "
                      "held back, that end training; {}).",
                      usual.patience));
  app->add_option("--checkpoint", command->checkpoint, "Written after every epoch.");
  app->add_flag("--resume", command->resume, "Resume from the checkpoint if it exists; the model is bit-identical.");
  app->add_option("--trace", command->trace, "CSV with the objective of every epoch.");
  app->add_option("--out", command->out, "The model: JSON, or for siamese a state dictionary.")->required();
  app->add_option("--threads", command->threads, "0: all. A motion model does not depend on it.")
      ->capture_default_str();
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  add_verbose_option(*app, command->verbose, "Also print the objective of every epoch.");
  app->footer(
      "Examples:\n"
      "  unshuffle train-tracker MOT17/train/MOT17-05-FRCNN --out model.json --checkpoint model.checkpoint --resume\n"
      "  unshuffle train-tracker MOT15/train/TUD-Campus --model siamese --hold-out 20 --out siamese.pt\n"
      "  unshuffle train-tracker MOT15/train/KITTI-17 --model nanotrack --start pretrained_nanotrackv2.pth --out f.pt");
  return {app, [command, app] { return run(*command, *app); }};
}

}  // namespace unshuffle::app
