// Flow cytometry: all links lost (FC), or lost within gates of equal mass (GFC) with one event in a hundred misgated.
#include <fmt/format.h>

#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/cytometry/simulate.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace cytometry_parts {

const std::vector<std::string> methods{"oracle", "ls", "hard-em", "em", "am", "robot"};
const std::vector<Index> arrangements{0, 3, 4, 5, 10};

/// Events of the file on the logicle-like asinh scale, or drawn ones.
Sample draw(const Settings& settings, Index gates, int run) {
  cytometry::ShuffleOptions options;
  options.gates = gates;
  options.seed = settings.seed + std::uint64_t(run);
  if (settings.quick) options.rows = 400;
  cytometry::ShuffledEvents events;
  if (settings.cytometry_file.empty()) {
    events = cytometry::draw_events(options);
  } else {
    std::vector<std::string> notes;
    const Table table =
        cytometry::read_table(settings.cytometry_file, {.scales = {{"", "asinh:150"}}}, KeepText::where_needed, notes);
    events = cytometry::shuffle_events(table, settings.cytometry_response, {}, options);
  }
  Sample sample{std::move(events.problem), std::move(events.test), {}};
  for (std::size_t row = 0; row < events.permutation.size(); ++row) {
    sample.truth.push_back({Index(row), events.permutation[row]});
  }
  return sample;
}

Measurements measure(const Settings& settings) {
  std::vector<Task> tasks;
  for (std::size_t k = 0; k < arrangements.size(); ++k) {
    for (int run = 0; run < (settings.quick ? 1 : settings.repetitions()); ++run) {
      for (const std::string& method : methods) {
        const Measurement place{arrangements[k] == 0 ? "FC" : "GFC", double(k), run, method, "", 0};
        const TrialOptions options{.seed = settings.seed + std::uint64_t(run)};
        tasks.emplace_back([=] { return try_method(place, draw(settings, arrangements[k], run), Linear(), options); });
      }
    }
  }
  return run_all(tasks, settings);
}

Findings judge(const Measurements& all) {
  Findings findings;
  auto error = [&](const std::string& method, double place) {
    return mean(values_at(select(all, {"", method, "relative_error"}), place));
  };
  auto over_gates = [&](const std::string& method) {
    std::vector<double> values;
    for (std::size_t k = 1; k < arrangements.size(); ++k) values.push_back(error(method, double(k)));
    return mean(values);
  };
  findings.claims.push_back({"On FC, AM fails while ROBOT has a small error.", error("robot", 0) < 0.5 * error("am", 0),
                             fmt::format("Relative error {:.3g} for ROBOT, {:.3g} for AM, {:.3g} for Oracle.",
                                         error("robot", 0), error("am", 0), error("oracle", 0))});
  std::string gated;
  bool best = true;
  for (const std::string& method : methods) {
    gated += fmt::format("{}{} {:.3g}", gated.empty() ? "" : ", ", method, over_gates(method));
    if (method != "oracle" && method != "robot") best = best && over_gates("robot") <= over_gates(method);
  }
  findings.claims.push_back({"On GFC, ROBOT has the smallest error of all methods but Oracle.", best,
                             "Mean relative error over 3, 4, 5 and 10 gates: " + gated + "."});
  return findings;
}

}  // namespace cytometry_parts

Experiment cytometry_experiment() {
  return {"cytometry", "Flow cytometry with all links lost and with links lost within gates.", cytometry_parts::measure,
          cytometry_parts::judge};
}

}  // namespace unshuffle::app
