// Options shared by several subcommands, and their translation for the library.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "event_options.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/prepare.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle::app {

/// Which files and which of their columns.
struct TableOptions {
  std::string formula;  ///< Empty: columns are named by the other options.
  std::string responses;
  std::string features;  ///< Empty: one table.
  std::string third;     ///< FEATURES where a formula comes first.
  std::vector<std::string> response;
  std::vector<std::string> x;
  std::vector<std::string> z;
  std::string weights;
  RowColumns rows;
  std::string wrong_rate;                ///< A number or a column.
  std::vector<std::string> groups;       ///< KEY or LEFT=RIGHT.
  std::vector<std::string> soft_groups;  ///< KEY:RATE or LEFT=RIGHT:RATE.
  std::string missing = "drop";
  std::string dates;
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
/// Columns that say something of their rows; part of add_table_options().
void add_row_options(CLI::App& command, TableOptions& options);
void add_model_options(CLI::App& command, ModelOptions& options);

/// A formula in the place of RESPONSES moves the files on, and decides on the intercept. Throws InvalidInput if there
/// is neither a formula nor --response, or both.
void settle(TableOptions& tables, ModelOptions& model);

/// Throws InvalidInput when the option was given but does not apply.
void require_meaning(const CLI::Option& option, bool has_meaning, std::string_view with);

/// --spreadsheet-safe, for commands whose CSV holds names and cells of others.
void add_spreadsheet_option(CLI::App& command, bool& safe);

/// One CSV field; if it must be safe, anything a spreadsheet would run as a formula gets a leading apostrophe.
[[nodiscard]] std::string csv_cell(const std::string& text, bool spreadsheet_safe);

struct Output {
  std::string option;
  std::string path;  ///< Empty: not requested.
};

/// Fails before a long run instead of after it: two options that name the same file, an output that is also an input, a
/// file that cannot be written. For input folders, their tables and descriptions count.
void require_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

/// A note if the data of a stored fit did not identify its answer.
void tell_of_verdict(const std::string& fit);

/// A note for every file that will be replaced.
void tell_of_replaced(const std::vector<Output>& outputs);

/// The files that the options name, with patterns expanded.
[[nodiscard]] std::vector<std::string> inputs_of(const TableOptions& options);

/// The roles of columns, as far as the options define them.
[[nodiscard]] ColumnChoice column_choice(const TableOptions& options);

struct LoadedTables {
  Problem problem;
  ColumnChoice columns;  ///< With everything filled in.
  Preparation rows;      ///< Rows of the files that the problem has.
};

/// Reads the files; reports on stderr what was recognised and excluded, unless quiet.
[[nodiscard]] LoadedTables load(const TableOptions& options, RowOrder order = RowOrder::unknown);

/// Limits the threads of everything that follows; 0: all.
void use_threads(int threads);

}  // namespace unshuffle::app
