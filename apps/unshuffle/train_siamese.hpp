// The arguments of train-tracker, and its part for --model siamese.
#pragma once

#include <string>
#include <vector>

#include "tracker_options.hpp"
#include "unshuffle/pixels/siamese.hpp"

namespace unshuffle::app {

struct TrainTrackerCommand {
  TrackerCommand tracker;
  tracking::TrainOptions training;
  std::string model = "boxes";
  int hidden = 0;
  bool no_camera = false;
  double width = 0.125;
  int frozen = pixels::Learning().frozen;
  std::vector<std::string> layers;
  std::string decoding = "best";
  std::string likeness = "first";
  double rho = 0;
  bool true_links = false;
  int hold_out = 0;
  double hold_back = pixels::SiameseTrainOptions().hold_back;
  std::string start;
  std::string checkpoint;
  bool resume = false;
  std::string trace;
  std::string out;
  int threads = 0;
  bool quiet = false;
  bool verbose = false;
};

/// A line per epoch, for --verbose.
void print_epochs(const std::vector<double>& objectives);

/// The models that use pictures.
[[nodiscard]] bool uses_pictures(const std::string& model);

[[nodiscard]] pixels::Decoding decoding_named(const std::string& name);
[[nodiscard]] pixels::Likeness likeness_named(const std::string& name);

/// --decoding and --target, which track and train-tracker share.
void add_seeing_options(CLI::App& command, std::string& decoding, std::string& likeness);

[[nodiscard]] int train_siamese(const TrainTrackerCommand& command);

[[nodiscard]] std::string trace_csv(const std::vector<double>& objectives);

}  // namespace unshuffle::app
