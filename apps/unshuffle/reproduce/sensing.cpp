// Unlabelled sensing, half of the rows shuffled: error against dimension and against the signal-to-noise ratio.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace sensing_parts {

const std::vector<std::string> methods{"oracle", "ls", "am", "em", "rr", "rs", "robot", "robot-paper"};

std::string panel_name(bool over_dimension, double mean) {
  return fmt::format("{}, features N({:g}, I)", over_dimension ? "dimension" : "SNR", mean);
}

/// Every method on one sample. RS, which most of them start from, runs once.
Measurements try_all(Measurement place, const SimulateOptions& design, const TrialOptions& options, bool paper) {
  const Linear model(false);
  Sample sample = sample_of(design);
  const Result consensus = fit_named("rs", sample, model, options);
  const double consensus_error = relative_error(*model.bound_to(sample.train), consensus.parameters, sample.test);
  sample.consensus = consensus.parameters;
  Measurements all;
  for (const std::string& method : methods) {
    if (method == "robot-paper" && !paper) continue;
    place.method = method;
    std::ranges::copy(
        method == "rs" ? outcome_of(place, consensus, consensus_error) : try_method(place, sample, model, options),
        std::back_inserter(all));
  }
  return all;
}

Measurements measure(const Settings& settings) {
  const std::int64_t samples = settings.quick ? 5000 : 200000;
  const TrialOptions options{.options = {{"rs_samples", samples}}, .row_hint = true};
  const std::vector<double> dimensions =
      settings.quick ? std::vector<double>{5, 20} : std::vector<double>{2, 5, 10, 20, 30};
  const std::vector<double> ratios =
      settings.quick ? std::vector<double>{10, 1000} : std::vector<double>{10, 100, 1000, 10000};
  std::vector<Task> tasks;
  for (const double mean : {0.0, 1.0}) {
    for (const bool over_dimension : {true, false}) {
      for (const double x : over_dimension ? dimensions : ratios) {
        for (int run = 0; run < (settings.quick ? 1 : settings.repetitions()); ++run) {
          SimulateOptions design{.design = Design::sensing, .mean = mean, .seed = settings.seed + std::uint64_t(run)};
          design.dim_z = over_dimension ? Index(x) : 10;
          if (!over_dimension) design.snr = x;
          const Measurement place{panel_name(over_dimension, mean), x, run, "", "", 0};
          // Thousands of batches take a while; a few draws show where the paper's settings lead.
          const bool paper = mean == 1 && over_dimension && (settings.quick ? x == 5 : run < 3);
          tasks.emplace_back([=] { return try_all(place, design, options, paper); });
        }
      }
    }
  }
  return run_all(tasks, settings);
}

Findings judge(const Measurements& all) {
  Findings findings;
  for (const std::string baseline : {"ls", "am", "em", "rr", "rs"}) {
    const Contest result = contest(all, "robot", baseline, "relative_error");
    findings.claims.push_back(
        {fmt::format("ROBOT is better than {} in all settings.", baseline), result.won_all(), result.in_words()});
  }
  Measurements low;
  for (const Measurement& one : all) {
    if (one.panel.starts_with("dimension") && one.x == 5) low.push_back(one);
  }
  const double robot = mean(values_at(select(low, {"", "robot", "relative_error"}), 5));
  const double oracle = mean(values_at(select(low, {"", "oracle", "relative_error"}), 5));
  findings.claims.push_back({"For low dimension, e = 5, ROBOT is even better than Oracle.", robot < oracle,
                             fmt::format("Mean relative error {:.4g} against {:.4g}.", robot, oracle)});
  return findings;
}

}  // namespace sensing_parts

Experiment sensing_experiment() {
  return {"sensing", "Unlabelled sensing: relative test error against dimension and signal-to-noise ratio.",
          sensing_parts::measure, sensing_parts::judge};
}

}  // namespace unshuffle::app
