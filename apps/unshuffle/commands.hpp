// One function per subcommand: it declares its options and says what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace unshuffle::app {

struct Command {
  CLI::App* app;             ///< Where its options live.
  std::function<int()> run;  ///< Returns the exit code.
  /// Several processes that mpirun started may run it; else each of them would do all of it and write the same files.
  bool by_several = false;
};

Command add_fit(CLI::App& root);
Command add_predict(CLI::App& root);
Command add_match(CLI::App& root);
Command add_compare(CLI::App& root);
Command add_simulate(CLI::App& root);
Command add_gradient(CLI::App& root);
Command add_gate(CLI::App& root);
Command add_track(CLI::App& root);
Command add_train_tracker(CLI::App& root);
Command add_evaluate(CLI::App& root);
Command add_info(CLI::App& root);
Command add_reproduce(CLI::App& root);

}  // namespace unshuffle::app
