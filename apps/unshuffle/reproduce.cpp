// unshuffle reproduce: the numbers behind the paper's figures and tables, and whether its claims hold here.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "course.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "reproduce/figures_script.hpp"
#include "reproduce/pages.hpp"
#include "say.hpp"
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

/// Deletes a figure of other measurements, so that the page does not show it beside these.
void write_measurements(const std::string& path, const Measurements& measurements) {
  for (const char* extension : {".svg", ".png"}) {
    std::error_code none_there;
    std::filesystem::remove(std::filesystem::path(path).replace_extension(extension), none_there);
  }
  write_whole_file(path, to_csv(measurements));
}

/// Of measurements from a file, which may be anyone's.
Findings judged(const Experiment& experiment, const Measurements& measured, const std::string& path) {
  try {
    return experiment.judge(measured);
  } catch (const BadData& error) {
    throw BadData(fmt::format("{}: {}", path, error.what()));
  }
}

Reproduced reproduce(const ReproduceCommand& command, const Experiment& experiment) {
  const auto begin = std::chrono::steady_clock::now();
  Settings settings = command.settings;
  settings.progress = progress_bar(command.quiet);
  const std::string file = experiment.name + ".csv", written = (std::filesystem::path(command.out) / file).string();
  const std::string read = command.from.empty() ? written : (std::filesystem::path(command.from) / file).string();
  const bool measured_before = command.resume && std::filesystem::exists(written);
  if (command.from.empty() && !measured_before) write_measurements(written, experiment.measure(settings));
  const Measurements measured = measurements_from_csv(read_file(read), read);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (!command.from.empty()) write_measurements(written, measured);
  const Findings findings = judged(experiment, measured, read);
  if (!command.quiet) {
    say(fmt::format("{}: {}\n", experiment.name, experiment.content));
    for (const Claim& claim : findings.claims) {
      say(fmt::format("  {} {} {}\n", claim.holds ? "[holds]        " : "[does not hold]", claim.paper, claim.found));
    }
  }
  if (command.verbose) fmt::print("  {} measurements in {}, {:.1f} s\n", measured.size(), written, taken.count());
  return {experiment, findings};
}

/// The settings that determine what is measured.
std::string text_of(const Settings& settings) {
  return fmt::format("{}, seed {}, cytometry \"{}\" \"{}\", mot \"{}\"\n", settings.quick ? "quick" : "full",
                     settings.seed, settings.cytometry_file, settings.cytometry_response, settings.mot_folder) +
         (settings.mot_weights.empty() ? "" : fmt::format("weights \"{}\"\n", settings.mot_weights));
}

/// The folder remembers its settings, so that --resume does not mix measurements of different kinds.
void keep_settings(const ReproduceCommand& command) {
  const std::string path = command.out + "/settings.txt", now = text_of(command.settings);
  if (command.resume && std::filesystem::exists(path)) {
    const std::string before = read_file(path);
    if (before != now)
      throw InvalidInput(fmt::format("--resume: {} was started with other settings: {}; now: {}", command.out,
                                     before.substr(0, before.find('\n')), now.substr(0, now.size() - 1)));
  }
  write_whole_file(path, now);
}

/// A word of a command that can be pasted into a shell.
std::string for_shell(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) != 0 || std::strchr("/._-+", c) != nullptr;
  };
  if (std::ranges::all_of(word, plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void write_pages(const ReproduceCommand& command, const std::vector<Reproduced>& results) {
  const std::filesystem::path folder(command.out);
  const std::string script = (folder / "figures.py").string(), page = (folder / "index.html").string();
  write_whole_file(page, index_html(results));
  write_whole_file((folder / "results.md").string(), results_markdown(results));
  write_whole_file(script, figures_script);
  if (!command.quiet) fmt::print("Wrote {}; draw its figures with: python3 {}\n", page, for_shell(script));
}

/// What an experiment needs and was not given; empty: nothing.
std::string what_lacks(const ReproduceCommand& command, const std::string& experiment) {
  if (!command.from.empty()) {
    const bool optional = experiment == "mot" || experiment == "mot-frames";
    const bool measured = std::filesystem::exists(std::filesystem::path(command.from) / (experiment + ".csv"));
    return command.name == "all" && optional && !measured ? experiment + ".csv in --from" : "";
  }
  if (experiment == "mot" && command.settings.mot_folder.empty()) {
    return "--mot-data FOLDER, which holds MOTChallenge sequences with det and gt";
  }
  if (experiment == "mot-frames" && (command.settings.mot_folder.empty() || command.settings.mot_weights.empty())) {
    return "--mot-data FOLDER with frames in img1 and --mot-weights FILE, NanoTrack's published weights";
  }
  return "";
}

int run(const ReproduceCommand& command) {
  use_threads(command.threads);
  if (command.settings.cytometry_file.empty() != command.settings.cytometry_response.empty()) {
    throw InvalidInput("--cytometry-file and --cytometry-response must be given together");
  }
  if (command.name != "all") {
    const std::string needed = what_lacks(command, command.name);
    if (!needed.empty()) throw InvalidInput(fmt::format("reproduce {} needs {}", command.name, needed));
  }
  std::error_code other_folder;
  if (std::filesystem::equivalent(command.from, command.out, other_folder)) {
    throw InvalidInput(fmt::format(
        "--from and --out both name {}, whose measurements would be overwritten; name another folder to write to",
        command.out));
  }
  make_folder(command.out);
  if (command.from.empty()) keep_settings(command);
  std::vector<Reproduced> results;
  for (const Experiment& experiment : chosen(command.name)) {
    const std::string needed = what_lacks(command, experiment.name);
    if (!needed.empty()) {
      if (!command.quiet) fmt::print("{}: skipped; it needs {}\n", experiment.name, needed);
      continue;
    }
    results.push_back(reproduce(command, experiment));
  }
  write_pages(command, results);
  return 0;
}

}  // namespace

Command add_reproduce(CLI::App& root) {
  CLI::App* app = root.add_subcommand("reproduce", "Run the paper's experiments and report which of its claims hold.");
  const auto command = std::make_shared<ReproduceCommand>();
  app->add_option("NAME", command->name, "Name of the experiment, or all.")->required()->check(CLI::IsMember(names()));
  app->add_option("--out", command->out,
                  "Folder for CSV files, index.html, results.md and figures.py, which draws the figures.")
      ->required();
  app->add_flag("--quick", command->settings.quick, "Fewer settings and repetitions: seconds instead of minutes.");
  app->add_option("--from", command->from, "Measure nothing; check the claims with the CSV files in this folder.");
  app->add_flag("--resume", command->resume,
                "Resume after an interruption: experiments whose CSV is already in --out are not measured again.")
      ->excludes("--from");
  app->add_option("--cytometry-file", command->settings.cytometry_file,
                  "FCS file for the cytometry experiment; without it, events are simulated.");
  app->add_option("--cytometry-response", command->settings.cytometry_response,
                  "Channel of that file to predict from the others.");
  app->add_option("--mot-data", command->settings.mot_folder,
                  "Folder of MOTChallenge sequences with det and gt, for the experiments mot and mot-frames.");
  app->add_option("--mot-weights", command->settings.mot_weights,
                  "Pretrained NanoTrack (pretrained_nanotrackv2.pth or v3), for the experiment mot-frames.");
  app->add_option("--seed", command->settings.seed, "Same seed, same results, times aside.")->capture_default_str();
  app->add_option("--threads", command->threads, "Cores to use; 0: all.")->capture_default_str();
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  add_verbose_option(*app, command->verbose, "Also print how much was measured, and how long it took.");
  app->footer(
      "Examples:\n  unshuffle reproduce all --quick --out results\n  unshuffle reproduce sensing --out results");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
