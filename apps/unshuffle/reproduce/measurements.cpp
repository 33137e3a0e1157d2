#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "reproduce/experiment.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::app {
namespace {

/// The cells of a column as text, also where all of them look like numbers.
const std::vector<std::string>& text_of(const Table& table, const std::string& name) { return table.column(name).text; }

}  // namespace

std::string to_csv(const Measurements& measurements) {
  std::string out = "panel,x,run,method,quantity,value\n";
  for (const Measurement& one : measurements) {
    out += fmt::format("{},{},{},{},{},{:.6g}\n", csv_field(one.panel), one.x, one.run, csv_field(one.method),
                       csv_field(one.quantity), one.value);
  }
  return out;
}

Measurements measurements_from_csv(const std::string& content, const std::string& source) {
  const Table table = parse_csv(content, source, KeepText::always);
  const auto &x = table.numbers("x"), &run = table.numbers("run"), &value = table.numbers("value");
  const auto &panel = text_of(table, "panel"), &method = text_of(table, "method"),
             &quantity = text_of(table, "quantity");
  Measurements read(x.size());
  for (std::size_t k = 0; k < read.size(); ++k) {
    if (run[k] != std::trunc(run[k]) || std::abs(run[k]) > std::numeric_limits<int>::max())
      throw BadData(fmt::format("{}: row {}: run = {}; a whole number was expected", source, k + 1, run[k]));
    read[k] = {panel[k], x[k], static_cast<int>(run[k]), method[k], quantity[k], value[k]};
  }
  return read;
}

std::vector<Experiment> all_experiments() {
  return {sensing_experiment(),   nonlinear_experiment(),         cytometry_experiment(), initialisation_experiment(),
          autodiff_experiment(),  em_correspondence_experiment(), ransac_experiment(),    rho_experiment(),
          alignment_experiment(), linear_residual_experiment(),   landscape_experiment(), conditioning_experiment(),
          mot_experiment(),       mot_frames_experiment()};
}

}  // namespace unshuffle::app
