// unshuffle predict: applies a saved fit to complete rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.hpp"
#include "options.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::app {
namespace {

struct PredictCommand {
  std::string fit;
  std::string table;
  std::string out;
  bool intervals = false;
  bool spreadsheet_safe = false;
  EventFlags events;
};

struct NamedColumns {
  std::vector<std::string> names;
  Matrix values;
};

struct Rows {
  Matrix x, z;
  RowFacts facts;
};

/// Columns that the fit needs to predict, offset and trials included.
Rows rows_of(const Table& table, const ColumnChoice& columns) {
  const auto numbers = [&](const std::string& name) {
    return name.empty() ? Vector() : Vector(table.matrix({name}).col(0));
  };
  Rows made{table.matrix(*columns.x), table.matrix(*columns.z), {}};
  made.facts.feature_offset = numbers(columns.rows.offset);
  made.facts.trials = numbers(columns.rows.trials);
  return made;
}

/// Every response with its prediction's standard error and the ends of its interval.
NamedColumns with_intervals(const Fitted& fitted, const Rows& rows, const std::string& source) {
  if (fitted.result().covariance.size() == 0) {
    throw BadData(
        fmt::format("{}: the fit has no standard errors, so its predictions have no intervals; "
                    "`unshuffle fit` says why under \"Standard errors\"",
                    source));
  }
  const Predictions predictions = fitted.predict_with_errors(rows.x, rows.z, rows.facts);
  const auto [low, high] = fitted.predict_interval(rows.x, rows.z, 0.95, rows.facts);
  const std::vector<std::string>& responses = fitted.context().columns.response;
  NamedColumns made{{}, Matrix(rows.z.rows(), 4 * predictions.values.cols())};
  for (std::size_t k = 0; k < responses.size(); ++k) {
    const auto column = static_cast<Index>(k);
    for (const char* ending : {"", "_std_err", "_low", "_high"}) made.names.push_back(responses[k] + ending);
    made.values.middleCols(4 * column, 4) << predictions.values.col(column), predictions.std_errors.col(column),
        low.col(column), high.col(column);
  }
  return made;
}

std::string as_csv(const NamedColumns& columns, bool spreadsheet_safe) {
  const auto& [names, predictions] = columns;
  std::string out;
  for (std::size_t at = 0; at < names.size(); ++at) out += (at > 0 ? "," : "") + csv_cell(names[at], spreadsheet_safe);
  out += '\n';
  for (Index row = 0; row < predictions.rows(); ++row) {
    for (Index column = 0; column < predictions.cols(); ++column) {
      if (column > 0) out += ',';
      append_number(out, predictions(row, column));
    }
    out += '\n';
  }
  return out;
}

/// The events with their predictions as further channels, NAME_predicted, on the scale of the fit.
std::string as_fcs(const std::string& path, const NamedColumns& columns) {
  if (!cytometry::has_fcs_extension(path))
    throw InvalidInput(
        fmt::format("--out: an FCS file is written of the events of one, and {} is a table; name a .csv file", path));
  cytometry::FcsFile file = cytometry::read_fcs(path);
  const Index before = file.events.cols();
  Matrix events(file.events.rows(), before + columns.values.cols());
  events << file.events, columns.values;
  for (Index k = 0; k < columns.values.cols(); ++k) {
    cytometry::FcsChannel channel{.name = columns.names[static_cast<std::size_t>(k)] + "_predicted"};
    channel.range = std::max(1.0, std::ceil(columns.values.col(k).cwiseAbs().maxCoeff()));
    file.channels.push_back(channel);
  }
  file.events = std::move(events);
  return to_fcs(file);
}

int run(const PredictCommand& command) {
  require_outputs({{"--out", command.out}}, {command.fit, command.table});
  const Fitted fitted = Fitted::load(command.fit);
  const ColumnChoice& columns = fitted.context().columns;
  EventFlags events = remembered(columns.events, command.events, command.fit);
  if (!cytometry::has_fcs_extension(command.table)) events = command.events;
  Table table = read_tables({command.table}, events, KeepText::where_needed, false).front();
  code_rows(table, columns);
  const Rows rows = rows_of(table, columns);
  const NamedColumns predictions = command.intervals
                                       ? with_intervals(fitted, rows, command.fit)
                                       : NamedColumns{columns.response, fitted.predict(rows.x, rows.z, rows.facts)};
  tell_of_verdict(command.fit);
  tell_of_replaced({{"--out", command.out}});
  if (cytometry::has_fcs_extension(command.out)) {
    write_whole_file(command.out, as_fcs(command.table, predictions));
  } else if (command.out.empty()) {
    fmt::print("{}", as_csv(predictions, command.spreadsheet_safe));
  } else {
    write_whole_file(command.out, as_csv(predictions, command.spreadsheet_safe));
  }
  return 0;
}

}  // namespace

Command add_predict(CLI::App& root) {
  CLI::App* app = root.add_subcommand("predict", "Predict the response of complete rows with a saved fit.");
  const auto command = std::make_shared<PredictCommand>();
  app->add_option("FIT", command->fit, "fit.json written by unshuffle fit --out.")->required();
  app->add_option("TABLE", command->table,
                  "CSV, NPY or FCS with every feature column of the fit; other columns are ignored.")
      ->required();
  app->add_option("--out", command->out,
                  "Write the predictions to this file instead of printing them; if TABLE and this file are FCS, the "
                  "events with a channel NAME_predicted.");
  app->add_flag(
      "--intervals", command->intervals,
      "Also write NAME_std_err, the standard error of the prediction, and NAME_low and NAME_high, between which "
      "95 % of new responses are.");
  add_spreadsheet_option(*app, command->spreadsheet_safe);
  add_scale_options(*app, command->events);
  app->footer(
      "Examples:\n  unshuffle predict fit.json new.csv --out predictions.csv\n"
      "  unshuffle predict fit.json new.csv --intervals");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
