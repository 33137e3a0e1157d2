// Options several subcommands share, and what they mean for the library.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "event_options.hpp"
#include "unshuffle/fitted/fit.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle::app {

/// Which files and which of their columns.
struct TableOptions {
  std::string responses;
  std::string features;  ///< Empty: one table.
  std::vector<std::string> response;
  std::vector<std::string> x;
  std::vector<std::string> z;
  std::string weights;
  std::vector<std::string> groups;       ///< KEY or LEFT=RIGHT.
  std::vector<std::string> soft_groups;  ///< KEY:RATE or LEFT=RIGHT:RATE.
  EventFlags events;
  bool quiet = false;
  CLI::Option* x_given = nullptr;
  CLI::Option* z_given = nullptr;
};

/// Which model, and how rows may match.
struct MethodOptions {
  std::string model = "linear";
  bool no_intercept = false;
  std::string method{};  ///< Set by add_method_option to the first of its choices.
  bool robust = false;
  double unmatched = 0.2;
  double rho1 = -1;
  double rho2 = -1;
  std::string objective = "transport";
  std::string epsilon = "auto";
  double epsilon_absolute = 0;
  std::string backend = "auto";
  double tolerance = 1e-9;
  double accuracy = 1e-10;
  int threads = 0;
  CLI::Option* model_given = nullptr;
  CLI::Option* method_given = nullptr;  ///< Null where a command does not choose one method.
  CLI::Option* objective_given = nullptr;
  CLI::Option* unmatched_given = nullptr;
  CLI::Option* rho1_given = nullptr;
  CLI::Option* rho2_given = nullptr;
  CLI::Option* epsilon_given = nullptr;
  CLI::Option* epsilon_absolute_given = nullptr;
};

void add_table_options(CLI::App& command, TableOptions& options);
void add_method_option(CLI::App& command, MethodOptions& options, const std::vector<Method>& choices);
void add_model_options(CLI::App& command, MethodOptions& options);

/// Throws InvalidInput naming the option, its value and what was expected.
[[nodiscard]] FitOptions to_fit_options(const MethodOptions& options);

/// Throws InvalidInput when the option was given although it has no meaning.
void require_meaning(const CLI::Option& option, bool has_meaning, std::string_view with);

/// Throws InvalidInput `OPTION = VALUE must be EXPECTED` unless it holds.
void require(bool holds, std::string_view option, double value, std::string_view expected);

struct Output {
  std::string option;
  std::string path;  ///< Empty: not asked for.
};

/// Throws before a long run begins what it would end with: two options that name one file, a file that cannot be
/// written.
void require_outputs(const std::vector<Output>& outputs);

/// Which columns mean what, as far as the options say.
[[nodiscard]] ColumnChoice column_choice(const TableOptions& options);

/// Reads the files; says on stderr what was left out, unless quiet.
[[nodiscard]] TablesAsProblem load(const TableOptions& options);

/// Limits the threads of everything that follows; 0: all.
void use_threads(int threads);

}  // namespace unshuffle::app
