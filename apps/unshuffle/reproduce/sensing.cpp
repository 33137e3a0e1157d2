// Unlabelled sensing, half of the rows shuffled: error against dimension and against the signal-to-noise ratio.
#include <fmt/format.h>

#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace {

const std::vector<std::string> methods{"oracle", "ls", "am", "em", "rr", "rs", "robot", "robot-paper"};

std::string panel_name(bool over_dimension, double mean) {
  return fmt::format("{}, features N({:g}, I)", over_dimension ? "dimension" : "SNR", mean);
}

Measurements measure(const Settings& settings) {
  FitOptions options;
  options.row_hint = true;
  options.threads = 1;
  options.rs_samples = settings.quick ? 5000 : 200000;
  const std::vector<double> dimensions = settings.quick ? std::vector<double>{5, 20} : std::vector<double>{2, 5, 10, 20, 30};
  const std::vector<double> ratios = settings.quick ? std::vector<double>{10, 1000} : std::vector<double>{10, 100, 1000, 10000};
  std::vector<Task> tasks;
  for (const double mean : {0.0, 1.0}) {
    for (const bool over_dimension : {true, false}) {
      for (const double x : over_dimension ? dimensions : ratios) {
        for (int run = 0; run < (settings.quick ? 1 : settings.repetitions()); ++run) {
          for (const std::string& method : methods) {
            if (settings.quick && method == "robot-paper" && (mean != 1 || !over_dimension)) continue;
            SimulateOptions design{.design = Design::sensing, .mean = mean, .seed = settings.seed + std::uint64_t(run)};
            design.dim_z = over_dimension ? Index(x) : 10;
            if (!over_dimension) design.snr = x;
            const Measurement place{panel_name(over_dimension, mean), x, run, method, "", 0};
            tasks.push_back([=] { return try_method(place, sample_of(design), Linear(false), options); });
          }
        }
      }
    }
  }
  return run_all(tasks, settings);
}

Shown show(const Measurements& all) {
  Shown shown;
  shown.figure = {.title = "Unlabelled sensing, n = 1000, 50 % shuffled", .columns = 2};
  for (const std::string& name : panels_of(all)) {
    const bool over_dimension = name.starts_with("dimension");
    Panel panel = panel_of(all, name, "relative_error", over_dimension ? "number of features e" : "signal-to-noise ratio",
                           "relative test error");
    panel.log_y = true;
    panel.log_x = !over_dimension;
    shown.figure.panels.push_back(std::move(panel));
  }
  for (const std::string baseline : {"ls", "am", "em", "rr", "rs"}) {
    const Contest result = contest(all, "robot", baseline, "relative_error");
    shown.claims.push_back({fmt::format("ROBOT is better than {} in all settings.", baseline),
                            result.won == result.settings,
                            fmt::format("Better in {} of {} settings{}.", result.won, result.settings,
                                        result.lost_at.empty() ? "" : "; not: " + result.lost_at)});
  }
  Measurements low;
  for (const Measurement& one : all) {
    if (one.panel.starts_with("dimension") && one.x == 5) low.push_back(one);
  }
  const double robot = mean(values_at(select(low, {"", "robot", "relative_error"}), 5));
  const double oracle = mean(values_at(select(low, {"", "oracle", "relative_error"}), 5));
  shown.claims.push_back({"For low dimension, e = 5, ROBOT is even better than Oracle.", robot < oracle,
                          fmt::format("Mean relative error {:.4g} against {:.4g}.", robot, oracle)});
  return shown;
}

}  // namespace

Experiment sensing_experiment() {
  return {"sensing", "Unlabelled sensing: relative test error against dimension and signal-to-noise ratio.", measure, show};
}

}  // namespace unshuffle::app
