#include "reproduce/four_panels.hpp"

#include "reproduce/summaries.hpp"

namespace unshuffle::app {
namespace {

struct Sweep {
  std::string panel;
  std::vector<double> settings;
  void (*set)(SimulateOptions&, double);
};

std::vector<Sweep> sweeps(bool quick) {
  std::vector<Sweep> all{{"d", {1, 2, 3, 4, 5}, [](SimulateOptions& o, double x) { o.dim_x = Index(x); }},
                         {"e", {1, 2, 3, 4, 5}, [](SimulateOptions& o, double x) { o.dim_z = Index(x); }},
                         {"noise", {0.01, 0.05, 0.1, 0.2, 0.5}, [](SimulateOptions& o, double x) { o.noise = x; }},
                         {"n", {100, 200, 500, 1000, 2000}, [](SimulateOptions& o, double x) { o.rows = Index(x); }}};
  if (!quick) return all;
  for (Sweep& sweep : all) sweep.settings = {sweep.settings[1], sweep.settings[3]};
  all.back().settings = {100, 200};
  return all;
}

}  // namespace

Measurements measure_four_panels(const Settings& settings, Design design, const std::vector<std::string>& methods,
                                 const Trial& trial) {
  std::vector<Task> tasks;
  for (const Sweep& sweep : sweeps(settings.quick)) {
    for (const double x : sweep.settings) {
      for (int run = 0; run < settings.repetitions(); ++run) {
        for (const std::string& method : methods) {
          SimulateOptions options{.design = design, .seed = settings.seed + std::uint64_t(run)};
          options.dim_x = 2;
          options.dim_z = 3;
          if (settings.quick) options.rows = 200;
          sweep.set(options, x);
          const Measurement place{sweep.panel, x, run, method, "", 0};
          tasks.emplace_back([=] { return trial(place, options); });
        }
      }
    }
  }
  return run_all(tasks, settings);
}

}  // namespace unshuffle::app
