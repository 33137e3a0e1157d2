// Is it better to sample more, or to stop sampling half-way and continue with ROBOT?
#include <fmt/format.h>

#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace ransac_parts {

Measurements measure(const Settings& settings) {
  std::vector<Task> tasks;
  for (const double mean : {0.0, 1.0}) {
    for (const double shuffle : {0.25, 0.5, 0.75}) {
      for (int run = 0; run < settings.repetitions(); ++run) {
        for (const std::string method : {"rs", "rs + robot", "robot"}) {
          const std::int64_t samples = (settings.quick ? 10000 : 200000) / (method == "rs" ? 1 : 2);
          const std::int64_t iterations = method == "rs + robot" ? 50 : 0;
          const TrialOptions options{.options = {{"rs_samples", samples}, {"max_iterations", iterations}},
                                     .row_hint = true,
                                     .seed = settings.seed + std::uint64_t(run)};
          const SimulateOptions design{.design = Design::sensing,
                                       .dim_z = 5,
                                       .shuffle = shuffle,
                                       .snr = 100,
                                       .mean = mean,
                                       .seed = options.seed};
          const Measurement place{fmt::format("features N({:g}, I)", mean), 100 * shuffle, run, method, "", 0};
          tasks.emplace_back([=] { return try_method(place, sample_of(design), Linear(false), options); });
        }
      }
    }
  }
  return run_all(tasks, settings);
}

Findings judge(const Measurements& all) {
  Findings findings;
  const Measurements errors = select(all, {"", "", "relative_error"});
  for (const auto& [shuffle, paper] : {std::pair{25.0, "1.04 ± 0.20"}, {50.0, "1.29 ± 0.32"}, {75.0, "1.27 ± 0.34"}}) {
    const std::vector<double> alone = values_at(select(errors, {"", "rs", ""}), shuffle);
    const std::vector<double> both = values_at(select(errors, {"", "rs + robot", ""}), shuffle);
    std::vector<double> ratios;
    for (std::size_t k = 0; k < std::min(alone.size(), both.size()); ++k) ratios.push_back(alone[k] / both[k]);
    findings.claims.push_back(
        {fmt::format("At {:g} % shuffled, RS alone has {} times the error of RS + ROBOT.", shuffle, paper),
         mean(alone) >= mean(both),
         fmt::format("Ratio {:.2f} (middle half of runs {:.2f} to {:.2f}); mean errors {:.3g} and {:.3g}.",
                     mean(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75), mean(alone), mean(both))});
  }
  return findings;
}

}  // namespace ransac_parts

Experiment ransac_experiment() {
  return {"ransac", "RS with twice the samples against RS followed by ROBOT.", ransac_parts::measure,
          ransac_parts::judge};
}

}  // namespace unshuffle::app
