// A sum of sines of features on two platforms: 80 % of the responses, all of the other platform, nothing linked.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reproduce/four_panels.hpp"
#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/sine.hpp"

namespace unshuffle::app {
namespace nonlinear_parts {

const std::vector<std::string> methods{"oracle", "ls", "robot", "robot-robust"};

/// The retained rows of D1 with their linked rows of D2 (truth), or with the rows at the same position (as given).
struct Split {
  Problem train, test;
  std::vector<KnownPair> truth;
};

Problem with_rows(const Problem& whole, Index first, Index count) {
  Problem part = whole;
  part.y = whole.y.middleRows(first, count);
  part.x = whole.x.middleRows(first, count);
  part.response_weights = {};
  return part;
}

Split split(const Sample& sample) {
  const Index train_rows = sample.train.responses() * 4 / 5;
  Split made{with_rows(sample.train, 0, train_rows),
             with_rows(sample.train, train_rows, sample.train.responses() - train_rows),
             {sample.truth.begin(), sample.truth.begin() + train_rows}};
  return made;
}

Measurements trial(const Measurement& place, const SimulateOptions& design) {
  const Sine model;
  const Split data = split(sample_of(design));
  Sample sample{data.train, data.test, data.truth};
  if (place.method == "ls") {
    sample.train.z = data.train.z.topRows(data.train.responses()).eval();
    sample.train.feature_weights = {};
  }
  const std::int64_t starts = place.method.starts_with("robot") ? 3 : 0;
  // Every response has its partner; a fifth of D2 has none.
  const TrialOptions options{.options = {{"starts", starts}, {"rho1", 0.0}}, .seed = design.seed};
  const Result made = fit_named(place.method, sample, model, options);
  return outcome_of(place, made, transport_error(data.test, model, made.parameters));
}

Measurements measure(const Settings& settings) {
  return measure_four_panels(settings, Design::nonlinear, methods, trial);
}

/// The settings with most rows and with most noise.
Measurements far_ends(const Measurements& all) {
  Measurements ends;
  for (const std::string panel : {"n", "noise"}) {
    const Measurements of_panel = select(all, {panel, "", ""});
    const std::vector<double> settings = settings_of(of_panel);
    if (settings.empty()) continue;
    const double most = *std::max_element(settings.begin(), settings.end());
    std::copy_if(of_panel.begin(), of_panel.end(), std::back_inserter(ends),
                 [&](const Measurement& one) { return one.x == most; });
  }
  return ends;
}

Findings judge(const Measurements& all) {
  Findings findings;
  for (const std::string against : {"robot", "ls"}) {
    const Contest result = contest(all, "robot-robust", against, "relative_error");
    findings.claims.push_back(
        {fmt::format("ROBOT-robust consistently outperforms {}.", against == "ls" ? "LS" : "ROBOT"), result.won_all(),
         result.in_words()});
  }
  const Contest oracle = contest(far_ends(all), "robot-robust", "oracle", "relative_error");
  findings.claims.push_back({"ROBOT-robust is better than Oracle when there are many rows or much noise.",
                             oracle.won_all(), oracle.in_words()});
  return findings;
}

}  // namespace nonlinear_parts

Experiment nonlinear_experiment() {
  return {"nonlinear", "Sum of sines with D1 and D2 of different sizes: error against d, e, noise and n.",
          nonlinear_parts::measure, nonlinear_parts::judge};
}

}  // namespace unshuffle::app
