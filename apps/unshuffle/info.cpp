// unshuffle info: what this program is made of.
#include <fmt/format.h>
#include <omp.h>

#include <Eigen/Core>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::app {
namespace {

int run(bool json) {
  const std::string eigen = fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
  const nlohmann::ordered_json info{
      {"version", version},
      {"methods", {"robot", "robot-robust"}},
      {"models", {"linear", "sine", "spline:K"}},
      {"backends", {"dense", "sorted"}},
      {"threads", omp_get_max_threads()},
      {"cpu_features", Eigen::SimdInstructionSetsInUse()},
      {"eigen", eigen},
      {"compiler", __VERSION__},
  };
  if (json) {
    fmt::print("{}\n", info.dump(2));
    return 0;
  }
  for (const auto& [key, value] : info.items()) {
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array()) text = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "));
    fmt::print("{:<14}{}\n", key, text);
  }
  return 0;
}

}  // namespace

Command add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "Version, components compiled in, threads and CPU features in use.");
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print JSON.");
  app->footer("Example:\n  unshuffle info --json");
  return {app, [json] { return run(*json); }};
}

}  // namespace unshuffle::app
