// The linear model on two platforms, all rows shuffled, against methods that align point sets.
#include <fmt/format.h>

#include "reproduce/four_panels.hpp"
#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace {

const std::vector<std::string> methods{"oracle", "ls", "em", "sliced-gw", "sinkhorn-gw", "robot", "robot-robust"};

Measurements trial(const Measurement& place, const SimulateOptions& design) {
  // As in the paper, EM is shown in one panel only; it needs a start that full shuffling does not give.
  if (place.method == "em" && place.panel != "noise") return {};
  // An entropic alignment takes O(n³) per iteration; three draws of it show where it stands.
  if (place.method == "sinkhorn-gw" && (place.run >= 3 || design.rows > 1000)) return {};
  FitOptions options;
  options.threads = 1;
  options.seed = design.seed;
  options.starts = place.method.starts_with("robot") ? 3 : 0;
  return try_method(place, sample_of(design), Linear(false), options);
}

Measurements measure(const Settings& settings) { return measure_four_panels(settings, Design::linear, methods, trial); }

Shown show(const Measurements& all) {
  Shown shown;
  shown.figure = four_panels_figure(all, "Linear model, two platforms, all rows shuffled", "relative test error");
  for (const std::string against : {"ls", "em", "sliced-gw", "sinkhorn-gw"}) {
    const Contest result = contest(all, "robot", against, "relative_error");
    shown.claims.push_back({fmt::format("ROBOT outperforms {}.", against), result.won_all(), result.in_words()});
  }
  const Contest oracle = contest(all, "robot", "oracle", "relative_error");
  shown.claims.push_back({"ROBOT can beat Oracle when the dimension is low or the noise is large.", oracle.won > 0,
                          fmt::format("Better in {} of {} settings.", oracle.won, oracle.settings)});
  return shown;
}

}  // namespace

Experiment linear_residual_experiment() {
  return {"linear-residual", "The linear model, fully shuffled: ROBOT against Gromov-Wasserstein alignments.", measure,
          show};
}

}  // namespace unshuffle::app
