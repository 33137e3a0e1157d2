// The linear model on two platforms, all rows shuffled, against methods that align point sets.
//
// The paper compares fits: residuals are those of rows rematched under the model, so a model can fit better than the
// true one. Prediction of linked rows is measured too; the features are Gaussian, so with all links lost only the
// length of w is determined.
#include <fmt/format.h>

#include "reproduce/four_panels.hpp"
#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace linear_residual_parts {

const std::vector<std::string> methods{"oracle", "ls", "em", "sliced-gw", "sinkhorn-gw", "robot", "robot-robust"};

Measurements trial(const Measurement& place, const SimulateOptions& design) {
  // As in the paper, EM is shown in one panel only; it needs a start that full shuffling does not give.
  if (place.method == "em" && place.panel != "noise") return {};
  // An entropic alignment takes O(n³) per iteration; three draws are enough to place it.
  if (place.method == "sinkhorn-gw" && (place.run >= 3 || design.rows > 1000)) return {};
  const std::int64_t starts = place.method.starts_with("robot") ? 3 : 0;
  const TrialOptions options{.options = {{"starts", starts}}, .seed = design.seed};
  const Sample sample = sample_of(design);
  const Linear model(false);
  const std::optional<Result> result = fit_where_possible(place.method, sample, model, options);
  if (!result) return {};
  const double error = relative_error(*model.bound_to(sample.train), result->parameters, sample.test);
  Measurements all = outcome_of(place, *result, error);
  all.push_back({place.panel, place.x, place.run, place.method, "residual",
                 transport_error(sample.test, model, result->parameters)});
  return all;
}

Measurements measure(const Settings& settings) { return measure_four_panels(settings, Design::linear, methods, trial); }

Findings judge(const Measurements& all) {
  Findings findings;
  for (const std::string against : {"ls", "em", "sliced-gw", "sinkhorn-gw"}) {
    const Contest fitted = contest(all, "robot", against, "residual");
    const Contest predicted = contest(all, "robot", against, "relative_error");
    findings.claims.push_back({fmt::format("ROBOT outperforms {}.", against), fitted.won_all(),
                               fmt::format("{} Predicting linked rows, it is better in {} of {} settings.",
                                           fitted.in_words(), predicted.won, predicted.settings)});
  }
  const Contest oracle = contest(all, "robot", "oracle", "residual");
  findings.claims.push_back({"ROBOT can beat Oracle when the dimension is low or the noise is large.", oracle.won > 0,
                             fmt::format("Better in {} of {} settings.", oracle.won, oracle.settings)});
  return findings;
}

}  // namespace linear_residual_parts

Experiment linear_residual_experiment() {
  return {"linear-residual", "The linear model, fully shuffled: ROBOT against Gromov-Wasserstein alignments.",
          linear_residual_parts::measure, linear_residual_parts::judge};
}

}  // namespace unshuffle::app
