// unshuffle simulate: samples with a known truth.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "commands.hpp"
#include "options.hpp"
#include "unshuffle/data/simulate.hpp"
#include "unshuffle/error.hpp"

namespace unshuffle::app {
namespace {

struct SimulateCommand {
  std::string design;
  SimulateOptions options;
  std::string out;
  bool quiet = false;
  std::vector<CLI::Option*> must_not_be_negative;
};

int run(SimulateCommand& command) {
  // A negative value means "left open" in the library; typed by a user it is a mistake.
  for (const CLI::Option* option : command.must_not_be_negative) {
    if (option->count() > 0 && option->as<double>() < 0) {
      throw InvalidInput(fmt::format("{} = {} must be at least 0", option->get_name(), option->as<double>()));
    }
  }
  static const std::map<std::string, Design> designs{
      {"sensing", Design::sensing}, {"linear", Design::linear}, {"nonlinear", Design::nonlinear},
      {"gamma", Design::gamma}};
  command.options.design = designs.at(command.design);
  const SimulateOptions chosen = completed(command.options);
  // A training and a test table, each once as numbers and once as text, measured at 28 to 34 bytes a number.
  const double numbers = 2 * static_cast<double>(chosen.rows) * static_cast<double>(chosen.dim_x + chosen.dim_z + 1);
  require_memory(34 * numbers, fmt::format("{} rows of {} columns", chosen.rows, chosen.dim_x + chosen.dim_z + 1));
  write_simulation(simulate(chosen), command.out);
  if (!command.quiet) {
    fmt::print("Wrote {0}/responses.csv, {0}/features.csv, {0}/test.csv and {0}/truth.json\n", command.out);
  }
  return 0;
}

}  // namespace

Command add_simulate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("simulate", "Draw a sample with lost row links and a known truth.");
  const auto command = std::make_shared<SimulateCommand>();
  SimulateOptions& options = command->options;
  app->add_option("DESIGN", command->design,
                  "sensing: y = z·w + noise, partly shuffled; linear: y = x·u + z·w + noise; nonlinear: a sum of sines "
                  "of x and z + noise; gamma: as sensing, all shuffled, with features of distinct gamma laws, which a fit can "
                  "find without any hint.")
      ->required()
      ->check(CLI::IsMember({"sensing", "linear", "nonlinear", "gamma"}));
  app->add_option("--n", options.rows, "Rows of either table, and of test.csv.")->capture_default_str();
  auto* dim_x = app->add_option("--dim-x", options.dim_x, "Features beside the response: 0 for sensing and gamma, else 2.");
  auto* dim_z = app->add_option("--dim-z", options.dim_z, "Features with lost links: 5 for sensing, 4 for gamma, else 3.");
  auto* shuffle = app->add_option("--shuffle", options.shuffle,
                                  "Share of rows shuffled among themselves: 0.5 for sensing, else 1.");
  auto* noise = app->add_option("--noise", options.noise, "Variance of the noise.")->capture_default_str();
  auto* snr = app->add_option("--snr", options.snr, "Signal variance over noise variance, instead of --noise.")
                  ->excludes(noise);
  app->add_option("--mean", options.mean, "Of every feature, with variance one; gamma: added to every feature.")->capture_default_str();
  app->add_option("--shape", options.shape, "gamma: shape of every feature's law; 0: 0.5, 1, 2, 4 and so on.")
      ->capture_default_str();
  app->add_option("--seed", options.seed, "Same seed, same sample.")->capture_default_str();
  app->add_option("--out", command->out, "Folder for responses.csv, features.csv, test.csv and truth.json.")
      ->required();
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  command->must_not_be_negative = {dim_x, dim_z, shuffle, noise, snr};
  app->footer("Example:\n  unshuffle simulate sensing --n 1000 --dim-z 5 --snr 100 --mean 1 --seed 7 --out sample");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
