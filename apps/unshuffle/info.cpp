// unshuffle info: what this program is made of.
#include <fmt/format.h>
#include <omp.h>

#include <Eigen/Core>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "options_page.hpp"
#include "say.hpp"
#include "shell.hpp"
#include "unshuffle/core/component.hpp"
#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::app {
namespace {

struct InfoCommand {
  std::string file;
  std::string describe;
  bool json = false;
};

nlohmann::ordered_json describe(const cytometry::FcsFile& file) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (const cytometry::FcsChannel& channel : file.channels) {
    channels.push_back({{"name", channel.name},
                        {"label", channel.label},
                        {"bits", channel.bits},
                        {"range", channel.range},
                        {"decades", channel.decades},
                        {"gain", channel.gain}});
  }
  return {{"file", file.source},          {"format", file.version},
          {"events", file.events.rows()}, {"spillover", cytometry::spillover_of(file).has_value()},
          {"channels", channels},         {"notes", file.notes}};
}

int run_on_file(const InfoCommand& command) {
  const cytometry::FcsFile file = cytometry::read_fcs(command.file);
  if (command.json) {
    // Keywords are bytes in an unknown encoding; invalid UTF-8 is shown as a replacement character.
    fmt::print("{}\n", describe(file).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  say(fmt::format("{}: {}, {} events, {} channels{}\n", file.source, file.version, file.events.rows(),
                  file.channels.size(), cytometry::spillover_of(file) ? ", with a spillover matrix" : ""));
  for (std::size_t at = 0; at < file.channels.size(); ++at) {
    const cytometry::FcsChannel& channel = file.channels[at];
    const auto values = file.events.col(static_cast<Index>(at));
    say(fmt::format("  {:<18}{:<20}{:>2} bits  ", channel.name, channel.label, channel.bits));
    fmt::print("{}", channel.decades > 0 ? fmt::format("{:g} decades", channel.decades) : std::string("linear   "));
    if (values.size() > 0) fmt::print("  {:g} .. {:g}", values.minCoeff(), values.maxCoeff());
    fmt::print("\n");
  }
  for (const std::string& one : file.notes) note(one);
  return 0;
}

/// What each optional component is for, or how to get it.
nlohmann::ordered_json components() {
  nlohmann::ordered_json list;
  for (const Component& component : {torch_component, opencv_component, mpi_component}) {
    list[component.name] = find_module(component).empty()
                               ? fmt::format("missing; for {}, {}", component.purpose, component.remedy)
                               : component.purpose;
  }
  return list;
}

std::vector<std::string> methods() {
  std::vector<std::string> names;
  for (const EstimatorEntry& entry : all_estimators()) names.emplace_back(entry.traits.name);
  return names;
}

int run(bool json) {
  const std::string eigen = fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
  const nlohmann::ordered_json info{
      {"version", version},
      {"methods", methods()},
      {"models", {"linear", "sine", "spline:K"}},
      {"backends", {"dense", "sorted"}},
      {"threads", omp_get_max_threads()},
      {"cpu_features", Eigen::SimdInstructionSetsInUse()},
      {"eigen", eigen},
      {"compiler", __VERSION__},
      {"components", components()},
  };
  if (json) {
    fmt::print("{}\n", info.dump(2));
    return 0;
  }
  for (const auto& [key, value] : info.items()) {
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array()) text = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "));
    if (value.is_object()) {
      for (const auto& [name, state] : value.items()) fmt::print("{:<14}{}\n", name, state.get<std::string>());
      continue;
    }
    fmt::print("{:<14}{}\n", key, text);
  }
  return 0;
}

int describe_commands(const CLI::App& root, const std::string& reader) {
  if (reader == "man") fmt::print("{}", man_page(root));
  if (reader == "bash") fmt::print("{}", bash_completion(root));
  if (reader == "zsh") fmt::print("{}", zsh_completion(root));
  if (reader == "options") fmt::print("{}", options_page(all_estimators()));
  if (reader == "auto") fmt::print("{}", auto_table());
  return 0;
}

}  // namespace

Command add_info(CLI::App& root) {
  CLI::App* app = root.add_subcommand("info", "Version, components compiled in, threads and CPU features in use.");
  const auto command = std::make_shared<InfoCommand>();
  app->add_option("FILE", command->file, "FCS file to describe instead: events, channels, irregularities.");
  app->add_flag("--json", command->json, "Print JSON.");
  app->add_option(
         "--describe", command->describe,
         "Print a description of the command line: a manual page, shell completions, the options of the methods "
         "as Markdown, or the rules by which auto chooses.")
      ->check(CLI::IsMember({"man", "bash", "zsh", "options", "auto"}));
  app->footer(
      "Examples:\n  unshuffle info --json\n  unshuffle info cells.fcs\n  source <(unshuffle info --describe bash)");
  return {app,
          [command, &root] {
            if (!command->describe.empty()) return describe_commands(root, command->describe);
            return command->file.empty() ? run(command->json) : run_on_file(*command);
          },
          true};
}

}  // namespace unshuffle::app
