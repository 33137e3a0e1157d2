// unshuffle predict: a saved fit applied to rows that are complete.
#include <fmt/format.h>

#include <memory>

#include "commands.hpp"
#include "event_options.hpp"
#include "unshuffle/data/output_file.hpp"
#include "unshuffle/data/table.hpp"
#include "unshuffle/report/saved.hpp"

namespace unshuffle::app {
namespace {

struct PredictCommand {
  std::string fit;
  std::string table;
  std::string out;
  EventFlags events;
};

std::string predictions_csv(const Matrix& predictions, const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t at = 0; at < names.size(); ++at) out += (at > 0 ? "," : "") + csv_field(names[at]);
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

int run(const PredictCommand& command) {
  if (!command.out.empty()) require_writable(command.out);
  const LoadedFit fit = load_fit(read_file(command.fit), command.fit);
  const ColumnChoice& columns = fit.saved.context.columns;
  const Table table = read_tables({command.table}, command.events, KeepText::where_needed, false).front();
  const Matrix predictions =
      predict_linked(*fit.model, table.matrix(*columns.x), table.matrix(*columns.z), fit.parameters);
  const std::string content = predictions_csv(predictions, columns.response);
  if (command.out.empty()) {
    fmt::print("{}", content);
  } else {
    write_whole_file(command.out, content);
  }
  return 0;
}

}  // namespace

Command add_predict(CLI::App& root) {
  CLI::App* app = root.add_subcommand("predict", "Predict the response of complete rows with a saved fit.");
  const auto command = std::make_shared<PredictCommand>();
  app->add_option("FIT", command->fit, "fit.json written by unshuffle fit --out.")->required();
  app->add_option("TABLE", command->table, "CSV, NPY or FCS with every feature column of the fit; others are not read.")
      ->required();
  app->add_option("--out", command->out, "Write the predictions there instead of printing them.");
  add_scale_options(*app, command->events);
  app->footer("Example:\n  unshuffle predict fit.json new.csv --out predictions.csv");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
