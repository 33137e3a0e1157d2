// Options shared by several subcommands, and their translation for the library.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "event_options.hpp"
#include "unshuffle/model/model.hpp"
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

struct ModelOptions {
  std::string model = "linear";
  bool no_intercept = false;
  CLI::Option* model_given = nullptr;

  [[nodiscard]] std::unique_ptr<Model> make() const;
};

void add_table_options(CLI::App& command, TableOptions& options);
void add_model_options(CLI::App& command, ModelOptions& options);

/// Throws InvalidInput when the option was given but does not apply.
void require_meaning(const CLI::Option& option, bool has_meaning, std::string_view with);

struct Output {
  std::string option;
  std::string path;  ///< Empty: not requested.
};

/// Fails before a long run instead of after it: two options that name the same file, a file that cannot be written.
void require_outputs(const std::vector<Output>& outputs);

/// The roles of columns, as far as the options define them.
[[nodiscard]] ColumnChoice column_choice(const TableOptions& options);

/// Reads the files; reports on stderr what was excluded, unless quiet.
[[nodiscard]] TablesAsProblem load(const TableOptions& options);

/// Throws InvalidInput for a negative number.
void require_threads(int threads);

/// Limits the threads of everything that follows; 0: all.
void use_threads(int threads);

}  // namespace unshuffle::app
