// unshuffle: regression when the row links between two tables are lost.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "commands.hpp"
#include "core/threads.hpp"
#include "ends.hpp"
#include "levels.hpp"
#include "say.hpp"
#include "suggest.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/memory.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/version.hpp"

namespace {

using namespace unshuffle::app;

int complain(const std::string& message, int exit_code) {
  unshuffle::app::complain(message);
  return exit_code;
}

/// Fails the run if the output could not be written (a full disk behind a redirection).
int flushed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return complain(fmt::format("standard output: cannot be written: {}", std::strerror(errno)), 4);
}

void require_one_process(const Command& command) {
  const int started = unshuffle::processes_started();
  if (started <= 1 || command.by_several) return;
  throw unshuffle::InvalidInput(fmt::format(
      "{} is done by one process, and mpirun or srun started {}: start it without them; fit is what they can share",
      command.app->get_name(), started));
}

/// In place of a command that this program was built without.
[[maybe_unused]] Command add_left_out(CLI::App& root, const std::string& name) {
  CLI::App* app = root.add_subcommand(name, "Not in this program: it was built without it.")->prefix_command();
  return {app, [name]() -> int {
            throw unshuffle::InvalidInput(fmt::format(
                "{} is not in this program, which was built with what a fit needs; ./scripts/build.sh builds all of it",
                name));
          }};
}

/// In the order of the help.
std::vector<Command> add_commands(CLI::App& root) {
  std::vector<Command> commands{add_fit(root),      add_predict(root),  add_match(root), add_compare(root),
                                add_simulate(root), add_gradient(root), add_gate(root)};
#if UNSHUFFLE_TRACKING
  for (const auto add : {add_track, add_train_tracker, add_evaluate}) commands.push_back(add(root));
#else
  for (const char* name : {"track", "train-tracker", "evaluate"}) commands.push_back(add_left_out(root, name));
#endif
#if UNSHUFFLE_EXPERIMENTS
  commands.push_back(add_reproduce(root));
#else
  commands.push_back(add_left_out(root, "reproduce"));
#endif
  commands.push_back(add_info(root));
  return commands;
}

int run(int argc, char** argv) {
  CLI::App root{"Regression when the row links between two tables are lost.", "unshuffle"};
  root.require_subcommand(1);
  root.set_version_flag("--version", unshuffle::version, "Print the version and exit.");
  root.footer(
      "Exit codes: 0 success; 1 finished but not converged or not identifiable (the result is still written); 2 bad "
      "usage;\n"
      "3 bad data; 4 out of memory or files failed; 129, 130, 143 ended by SIGHUP, SIGINT or SIGTERM.\n\n"
      "A first run:\n"
      "  unshuffle simulate sensing --out sample\n"
      "  unshuffle fit sample/responses.csv sample/features.csv --response y --hint rows --out fit.json\n"
      "  unshuffle predict fit.json sample/test.csv\n\n"
      "Run unshuffle COMMAND --help for details.");
  const std::vector<Command> commands = add_commands(root);
  if (const auto unknown = unknown_word(root, {argv + 1, argv + argc})) return complain(*unknown, 2);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return flushed(root.exit(error));
    return complain(fmt::format("{} (see unshuffle --help)", error.what()), 2);
  }
  unshuffle::require_threads(0);  // what OMP_NUM_THREADS asks for
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    require_one_process(command);
    return flushed(command.run());
  }
  return 2;
}

int run_and_complain(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const unshuffle::Error& error) {
    return complain(unshuffle::in_terms_of(unshuffle::Dialect::command_line, error.what()), error.exit_code());
  } catch (const std::bad_alloc&) {
    return complain("out of memory", 4);
  } catch (const std::exception& error) {
    return complain(error.what(), 4);
  }
}

}  // namespace

int main(int argc, char** argv) {
  run_fastest_build(argv);
  unshuffle::keep_freed_memory();
  leave_cleanly();
  prepare_for_limited_memory(argv);
  return run_and_complain(argc, argv);
}
