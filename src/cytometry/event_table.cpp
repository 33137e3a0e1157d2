#include "unshuffle/cytometry/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/gating.hpp"
#include "unshuffle/cytometry/transform.hpp"
#include "unshuffle/tables/npy.hpp"

namespace unshuffle::cytometry {
namespace {

std::string scale_text(const FcsChannel& channel, const EventOptions& options) {
  std::string for_all = "linear";
  for (const ChannelScale& choice : options.scales) {
    if (choice.channel == channel.name || (!channel.label.empty() && choice.channel == channel.label))
      return choice.scale;
    if (choice.channel.empty()) for_all = choice.scale;
  }
  return for_all;
}

Column scaled_column(const FcsFile& file, Index at, const EventOptions& options) {
  const FcsChannel& channel = file.channels[static_cast<std::size_t>(at)];
  const std::string text = scale_text(channel, options);
  const Scale scale = parse_scale(text, channel.range);
  Column column{.name = channel.name, .label = channel.label == channel.name ? "" : channel.label};
  column.holds_numbers = true;
  column.numbers.reserve(static_cast<std::size_t>(file.events.rows()));
  for (Index event = 0; event < file.events.rows(); ++event) {
    const double value = scaled(scale, file.events(event, at));
    if (!std::isfinite(value) && column.fault.empty()) {
      column.fault = fmt::format("{}, event {}: channel \"{}\" holds {}, which is not a finite number on the scale {}",
                                 file.source, event + 1, channel.name, file.events(event, at), text);
    }
    column.numbers.push_back(value);
  }
  return column;
}

/// A column whose cells are compared as written and never taken for a feature.
Column text_column(const std::string& name, std::vector<std::string> cells) {
  Column column{.name = name};
  column.first_text_line = 1;
  column.only_key = true;
  if (!cells.empty()) column.first_text = cells.front();
  column.text = std::move(cells);
  return column;
}

void add_column(Table& table, Column column) {
  if (table.find(column.name) != nullptr) {
    throw BadData(fmt::format("{}: two columns are named \"{}\"", table.source, column.name));
  }
  table.columns.push_back(std::move(column));
}

void keep_numbers_as_text(Table& table) {
  for (Column& column : table.columns) {
    if (!column.text.empty()) continue;
    column.text.resize(column.numbers.size());
    for (std::size_t row = 0; row < column.numbers.size(); ++row) append_number(column.text[row], column.numbers[row]);
  }
}

}  // namespace

ChannelScale parse_channel_scale(const std::string& text) {
  const auto equals = text.rfind('=');
  ChannelScale choice = equals == std::string::npos ? ChannelScale{"", text}
                                                    : ChannelScale{text.substr(0, equals), text.substr(equals + 1)};
  (void)parse_scale(choice.scale, 1);  // Throws before any file is read.
  return choice;
}

Table event_table(FcsFile file, const EventOptions& options) {
  if (file.events.rows() == 0) throw BadData(fmt::format("{}: the file holds no events", file.source));
  Table table;
  table.source = file.source;
  table.rows = file.events.rows();
  std::vector<std::string> patterns;
  if (!options.gates.empty()) {
    const GateSet gates = options.gates_content.empty() ? read_gating_ml(options.gates)
                                                        : parse_gating_ml(options.gates_content, options.gates);
    patterns = gate_patterns(gates, membership(gates, file));
  }
  if (options.compensate) compensate(file);
  for (Index at = 0; at < file.events.cols(); ++at) add_column(table, scaled_column(file, at, options));
  if (!patterns.empty()) add_column(table, text_column(gates_column, std::move(patterns)));
  return table;
}

Table read_table(const std::string& path, const EventOptions& options, KeepText keep_text,
                 std::vector<std::string>& notes) {
  Table table;
  if (!has_fcs_extension(path) && !path.ends_with(".npy")) {
    table = read_csv(path, keep_text);
    if (!table.detected.empty())
      notes.push_back(
          fmt::format("{}: {}, {} rows × {}", table.source, table.detected, table.rows, table.columns.size()));
    return table;
  }
  if (has_fcs_extension(path)) {
    FcsFile file = read_fcs(path);
    notes.insert(notes.end(), file.notes.begin(), file.notes.end());
    table = event_table(std::move(file), options);
  } else {
    table = read_npy(path);
  }
  if (keep_text == KeepText::always) keep_numbers_as_text(table);
  return table;
}

void add_equal_mass_gates(Table& table, const std::string& column, Index count) {
  const std::vector<double>& numbers = table.numbers(column);
  const Vector values = Eigen::Map<const Vector>(numbers.data(), table.rows);
  std::vector<std::string> cells;
  for (const Index gate : equal_mass_gates(values, count)) cells.push_back(std::to_string(gate));
  add_column(table, text_column(mass_gate_column, std::move(cells)));
}

}  // namespace unshuffle::cytometry
