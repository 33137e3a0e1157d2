// unshuffle simulate: samples with a known truth.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <map>
#include <memory>

#include "commands.hpp"
#include "event_options.hpp"
#include "options.hpp"
#include "say.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/cytometry/simulate.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace unshuffle::app {
namespace {

struct SimulateCommand {
  std::string design;
  SimulateOptions options;
  std::string out;
  bool quiet = false;
  std::vector<CLI::Option*> must_not_be_negative;

  EventFlags events;
  std::string from;
  std::string response;
  std::vector<std::string> features;
  double gate_error = 0.01;
  bool fcs = false;
  std::vector<CLI::Option*> only_cytometry;
  std::vector<CLI::Option*> not_cytometry;
  std::vector<CLI::Option*> only_drawn;
  std::vector<CLI::Option*> not_wages;
  CLI::Option* rows_given = nullptr;
  Index shards = 1;
  CLI::Option* shards_given = nullptr;
};

/// Options that the chosen design does not read are rejected, not ignored.
void require_meaning(const SimulateCommand& command, bool cytometry) {
  for (const CLI::Option* option : cytometry ? command.not_cytometry : command.only_cytometry) {
    if (option->count() == 0) continue;
    throw InvalidInput(fmt::format("{} {} with the design cytometry", option->get_name(),
                                   cytometry ? "cannot be used" : "applies only"));
  }
  const bool scaled = !command.events.transforms.empty() || command.events.compensate || !command.features.empty();
  if (scaled && command.from.empty()) {
    throw InvalidInput("--features, --transform and --compensate apply only with --from");
  }
  for (const CLI::Option* option : command.only_drawn) {
    if (option->count() == 0 || command.from.empty()) continue;
    throw InvalidInput(fmt::format("{} cannot be used with --from: the noise is that of the file", option->get_name()));
  }
}

cytometry::ShuffledEvents make_events(const SimulateCommand& command) {
  cytometry::ShuffleOptions options;
  if (command.rows_given->count() > 0) options.rows = command.options.rows;
  options.features = command.options.dim_z;
  options.gates = command.events.equal_mass_gates;
  options.gate_error = command.gate_error;
  options.noise = command.options.snr >= 0 ? 1 / (1 + command.options.snr) : command.options.noise;
  options.seed = command.options.seed;
  const bool from_file = !command.from.empty();
  if (from_file == command.response.empty()) throw InvalidInput("--from and --response must be given together");
  if (from_file) {
    const Table table = read_tables({command.from}, command.events, KeepText::where_needed, command.quiet).front();
    return shuffle_events(table, command.response, command.features, options);
  }
  return draw_events(options);
}

/// Files of the same names may stand in the folder already, but not the one that the sample is made of.
void spare_input(const SimulateCommand& command) {
  if (command.from.empty()) return;
  make_folder(command.out);
  std::vector<Output> outputs;
  for (const char* name : {"responses.csv", "features.csv", "test.csv", "truth.json", "responses.fcs", "features.fcs"})
    outputs.push_back({"--out", fmt::format("{}/{}", command.out, name)});
  require_outputs(outputs, {command.from});
}

/// The files of a folder that are about to be replaced.
void tell_of_replaced_files(const SimulateCommand& command) {
  if (command.quiet) return;
  const bool wages = command.design == "wages";
  std::vector<Output> outputs;
  for (const char* name : {wages ? "wages" : "responses", wages ? "people" : "features", "test"})
    outputs.push_back({"--out", fmt::format("{}/{}.csv", command.out, name)});
  outputs.push_back({"--out", command.out + "/truth.json"});
  tell_of_replaced(outputs);
}

void write_cytometry(const SimulateCommand& command) {
  const cytometry::ShuffledEvents events = make_events(command);
  spare_input(command);
  tell_of_replaced_files(command);
  write_events(events, command.out, command.fcs);
  if (command.quiet) return;
  for (const std::string& one : events.notes) note(one);
}

/// A training and a test table, each once as numbers and once as text, measured at 28 to 34 bytes a number. Of several
/// shards one per thread is in memory.
void require_memory_for(const SimulateOptions& chosen, Index shards) {
  const auto at_once = static_cast<double>(std::min<Index>(shards, omp_get_max_threads()));
  const double rows = static_cast<double>(chosen.rows) * at_once / static_cast<double>(std::max<Index>(shards, 1));
  const Index columns = chosen.dim_x + chosen.dim_z + 1;
  require_memory(34 * 2 * rows * static_cast<double>(columns), fmt::format("{:.0f} rows of {} columns", rows, columns));
}

int run_wages(const SimulateCommand& command) {
  for (const auto* options : {&command.only_cytometry, &command.not_cytometry, &command.only_drawn, &command.not_wages})
    for (const CLI::Option* option : *options)
      if (option->count() > 0)
        throw InvalidInput(fmt::format("{} cannot be used with the design wages", option->get_name()));
  tell_of_replaced_files(command);
  write_wages(command.options.rows, command.options.seed, command.out);
  if (!command.quiet) {
    fmt::print("Wrote {0}/wages.csv, {0}/people.csv, {0}/test.csv and {0}/truth.json\n", command.out);
  }
  return 0;
}

int run(SimulateCommand& command) {
  // A negative value means "not set" in the library; from a user it is a mistake.
  for (const CLI::Option* option : command.must_not_be_negative) {
    if (option->count() > 0 && option->as<double>() < 0) {
      throw InvalidInput(fmt::format("{} = {} must be at least 0", option->get_name(), option->as<double>()));
    }
  }
  if (command.design == "wages") return run_wages(command);
  static const std::map<std::string, Design> designs{{"sensing", Design::sensing},
                                                     {"linear", Design::linear},
                                                     {"nonlinear", Design::nonlinear},
                                                     {"gamma", Design::gamma}};
  const auto design = designs.find(command.design);
  require_meaning(command, design == designs.end());
  if (design == designs.end()) {
    write_cytometry(command);
  } else {
    tell_of_replaced_files(command);
    command.options.design = design->second;
    const SimulateOptions chosen = completed(command.options);
    if (command.shards_given->count() > 0) {
      require_memory_for(chosen, command.shards);
      write_shards(chosen, command.shards, command.out);
      if (!command.quiet)
        fmt::print("Wrote {0} shards {1}/responses-*.csv and {1}/features-*.csv, {1}/test.csv and {1}/truth.json\n",
                   command.shards, command.out);
      return 0;
    }
    require_memory_for(chosen, 1);
    write_simulation(simulate(chosen), command.out);
  }
  if (!command.quiet) {
    fmt::print("Wrote {0}/responses.csv, {0}/features.csv, {0}/test.csv and {0}/truth.json\n", command.out);
  }
  return 0;
}

void add_cytometry_options(CLI::App& app, SimulateCommand& command) {
  command.only_cytometry = {
      app.add_option("--from", command.from, "Cytometry: FCS, CSV or NPY file whose response is to be shuffled."),
      app.add_option("--response", command.response, "Cytometry, with --from: the channel to predict."),
      app.add_option("--features", command.features, "Cytometry, with --from: channels to predict from; else all.")
          ->delimiter(',')
          ->allow_extra_args(false),
      app.add_option("--equal-mass-gates", command.events.equal_mass_gates,
                     "Cytometry: sort cells into K gates by their response first, column `mass_gate`."),
      app.add_option("--gate-error", command.gate_error, "Cytometry: share of cells that land in a wrong gate.")
          ->capture_default_str(),
      app.add_flag("--fcs", command.fcs, "Cytometry: write responses.fcs and features.fcs too.")};
  add_scale_options(app, command.events);
}

}  // namespace

Command add_simulate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("simulate", "Draw a sample with lost row links and known truth.");
  const auto command = std::make_shared<SimulateCommand>();
  SimulateOptions& options = command->options;
  app->add_option("DESIGN", command->design,
                  "sensing: y = z·w + noise, partly shuffled; linear: y = x·u + z·w + noise; nonlinear: a sum of sines "
                  "of x and z + noise; gamma: as sensing, all shuffled, with features of distinct gamma laws, "
                  "which a fit can find without any hint; cytometry: cells of a few populations, or of an FCS file, "
                  "all links lost or lost "
                  "within gates; wages: wages.csv and people.csv as people have them, with text, missing cells, a "
                  "common town and people without a wage.")
      ->required()
      ->check(CLI::IsMember({"sensing", "linear", "nonlinear", "gamma", "cytometry", "wages"}));
  command->rows_given = app->add_option(
      "--n", options.rows,
      "Rows of either table, and of test.csv; 1000. Cytometry: events in all, nine tenths for training; 1400.");
  auto* dim_x =
      app->add_option("--dim-x", options.dim_x, "Features beside the response: 0 for sensing and gamma, else 2.");
  auto* dim_z = app->add_option("--dim-z", options.dim_z,
                                "Features with lost links: 5 for sensing, 4 for gamma, 20 for cytometry (the most "
                                "significant of a file), else 3.");
  auto* shuffle = app->add_option("--shuffle", options.shuffle,
                                  "Share of rows shuffled among themselves: 0.5 for sensing, else 1.");
  auto* noise =
      app->add_option("--noise", options.noise, "Variance of the noise; for cytometry its share of the variance.")
          ->capture_default_str();
  auto* snr = app->add_option("--snr", options.snr, "Signal variance over noise variance, instead of --noise.")
                  ->excludes(noise);
  auto* mean = app->add_option("--mean", options.mean, "Of every feature, with variance one; gamma: added to each.")
                   ->capture_default_str();
  auto* shape = app->add_option("--shape", options.shape, "gamma: shape of every feature's law; 0: 0.5, 1, 2, 4, ...")
                    ->capture_default_str();
  app->add_option("--seed", options.seed, "Same seed, same sample.")->capture_default_str();
  app->add_option("--out", command->out, "Folder for responses.csv, features.csv, test.csv and truth.json.")
      ->required();
  command->shards_given = app->add_option(
      "--shards", command->shards,
      "Spread the rows over that many files of either table, drawn one by one: for tables of any size.");
  add_cytometry_options(*app, *command);
  command->not_wages = {dim_z};
  command->not_cytometry = {dim_x, shuffle, mean, shape, command->shards_given};
  command->only_drawn = {noise, snr};
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  command->must_not_be_negative = {dim_x, dim_z, shuffle, noise, snr};
  app->footer(
      "Example:\n  unshuffle simulate sensing --n 1000 --dim-z 5 --snr 100 --mean 1 --seed 7 --out sample\n"
      "Example: two tables as people have them\n  unshuffle simulate wages --out demo\n"
      "Example: predict one channel of a cytometry file from the others, cells sorted by four gates\n"
      "  unshuffle simulate cytometry --from cells.fcs --response FITC-A --transform asinh:150 \\\n"
      "      --equal-mass-gates 4 --out gfc\n"
      "  unshuffle fit gfc/responses.csv gfc/features.csv --response FITC-A --group mass_gate");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
