// unshuffle reproduce: the figures and tables of the paper, and whether its claims hold here.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "course.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "reproduce/pages.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::app {
namespace {

struct ReproduceCommand {
  std::string name;
  std::string out;
  std::string from;
  Settings settings;
  int threads = 0;
  bool resume = false;
  bool quiet = false;
  bool verbose = false;
};

std::vector<Experiment> chosen(const std::string& name) {
  std::vector<Experiment> all = all_experiments();
  if (name == "all") return all;
  std::erase_if(all, [&](const Experiment& one) { return one.name != name; });
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> known{"all"};
  for (const Experiment& one : all_experiments()) known.push_back(one.name);
  return known;
}

Result reproduce(const ReproduceCommand& command, const Experiment& experiment) {
  const auto begin = std::chrono::steady_clock::now();
  const std::filesystem::path folder(command.out);
  Settings settings = command.settings;
  settings.progress = progress_bar(command.quiet);
  const std::string file = experiment.name + ".csv", written = (folder / file).string();
  const std::string read = command.from.empty() ? written : (std::filesystem::path(command.from) / file).string();
  const bool measured_before = command.resume && std::filesystem::exists(written);
  if (command.from.empty() && !measured_before) write_whole_file(written, to_csv(experiment.measure(settings)));
  const Measurements measured = measurements_from_csv(read);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (!command.from.empty()) write_whole_file(written, to_csv(measured));
  const Shown shown = experiment.show(measured);
  write_figure(shown.figure, (folder / experiment.name).string());
  if (!command.quiet) {
    fmt::print("{}: {}\n", experiment.name, experiment.content);
    for (const Claim& claim : shown.claims) {
      fmt::print("  {} {} {}\n", claim.holds ? "[holds]        " : "[does not hold]", claim.paper, claim.found);
    }
  }
  if (command.verbose) fmt::print("  {} measurements in {}, {:.1f} s\n", measured.size(), written, taken.count());
  return {experiment, shown.claims, shown.table};
}

/// Everything that decides what is measured.
std::string text_of(const Settings& settings) {
  return fmt::format("{}, seed {}, cytometry \"{}\" \"{}\", mot \"{}\"\n", settings.quick ? "quick" : "full",
                     settings.seed, settings.cytometry_file, settings.cytometry_response, settings.mot_folder);
}

/// The folder remembers its settings, so that --resume does not mix measurements of different kinds.
void keep_settings(const ReproduceCommand& command) {
  const std::string path = command.out + "/settings.txt", now = text_of(command.settings);
  if (command.resume && std::filesystem::exists(path)) {
    const std::string before = read_file(path);
    if (before != now)
      throw InvalidInput(fmt::format("--resume: {} was begun with other settings: {}; now: {}", command.out,
                                     before.substr(0, before.find('\n')), now.substr(0, now.size() - 1)));
  }
  write_whole_file(path, now);
}

int run(const ReproduceCommand& command) {
  use_threads(command.threads);
  if (command.settings.cytometry_file.empty() != command.settings.cytometry_response.empty()) {
    throw InvalidInput("--cytometry-file and --cytometry-response belong together");
  }
  const bool no_videos = command.from.empty() && command.settings.mot_folder.empty();
  if (command.name == "mot" && no_videos) {
    throw InvalidInput("reproduce mot needs --mot-data FOLDER, which holds MOTChallenge sequences with det and gt");
  }
  make_folder(command.out);
  if (command.from.empty()) keep_settings(command);
  std::vector<Result> results;
  for (const Experiment& experiment : chosen(command.name)) {
    if (experiment.name == "mot" && no_videos) {
      if (!command.quiet) fmt::print("mot: left out, because --mot-data FOLDER was not given.\n");
      continue;
    }
    results.push_back(reproduce(command, experiment));
  }
  write_whole_file(command.out + "/index.html", index_html(results));
  write_whole_file(command.out + "/results.md", results_markdown(results));
  if (!command.quiet) fmt::print("Wrote {}/index.html\n", command.out);
  return 0;
}

}  // namespace

Command add_reproduce(CLI::App& root) {
  CLI::App* app = root.add_subcommand("reproduce", "Run the paper's experiments and say which of its claims hold.");
  const auto command = std::make_shared<ReproduceCommand>();
  app->add_option("NAME", command->name, "Which one, or all.")->required()->check(CLI::IsMember(names()));
  app->add_option("--out", command->out, "Folder for CSV, PNG, SVG, index.html and results.md.")->required();
  app->add_flag("--quick", command->settings.quick, "Fewer settings and repetitions: seconds instead of minutes.");
  app->add_option("--from", command->from, "Measure nothing; draw from the CSV files in this folder.");
  app->add_flag("--resume", command->resume,
                "Go on after an interruption: experiments whose CSV is in --out already are not measured again.")
      ->excludes("--from");
  app->add_option("--cytometry-file", command->settings.cytometry_file,
                  "FCS file for the cytometry experiment; without it, events are simulated.");
  app->add_option("--cytometry-response", command->settings.cytometry_response,
                  "Channel of that file to predict from the others.");
  app->add_option("--mot-data", command->settings.mot_folder,
                  "Folder of MOTChallenge sequences with det and gt, for the experiment mot.");
  app->add_option("--seed", command->settings.seed, "Same seed, same results, times aside.")->capture_default_str();
  app->add_option("--threads", command->threads, "Cores to use; 0: all.")->capture_default_str();
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  add_verbose_option(*app, command->verbose, "Also print how much was measured, and how long it took.");
  app->footer(
      "Examples:\n  unshuffle reproduce all --quick --out results\n  unshuffle reproduce sensing --out results");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
