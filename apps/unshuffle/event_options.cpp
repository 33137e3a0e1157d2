#include "event_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "say.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/files.hpp"

namespace unshuffle::app {
namespace {

void require_fcs(const EventFlags& flags) {
  const auto refuse = [](std::string_view option) {
    throw InvalidInput(fmt::format("{} applies only with FCS files", option));
  };
  if (!flags.transforms.empty()) refuse("--transform");
  if (flags.compensate) refuse("--compensate");
  if (!flags.gates.empty()) refuse("--gates");
}

void require_known_channels(const cytometry::EventOptions& options, const std::vector<Table>& tables) {
  for (const cytometry::ChannelScale& choice : options.scales) {
    const auto has = [&](const Table& table) { return table.find(choice.channel) != nullptr; };
    if (choice.channel.empty() || std::any_of(tables.begin(), tables.end(), has)) continue;
    (void)tables.back().column(choice.channel);  // Throws, listing the channels there are.
  }
}

}  // namespace

void add_scale_options(CLI::App& command, EventFlags& flags) {
  command
      .add_option("--transform", flags.transforms,
                  "FCS: CHANNEL=SCALE, or SCALE for every channel without its own; may be repeated. Scales: "
                  "linear, log, asinh, asinh:COFACTOR, logicle, logicle:T,W,M,A.")
      ->allow_extra_args(false)
      ->type_name("[CHANNEL=]SCALE");
  command.add_flag("--compensate", flags.compensate, "FCS: undo the spillover that the file itself describes.");
}

void add_gate_options(CLI::App& command, EventFlags& flags) {
  command.add_option("--gates", flags.gates,
                     "FCS: Gating-ML 2.0 file; the column `gates` then names the gates each event is in, a key for "
                     "--group gates.");
  command.add_option("--equal-mass-gates", flags.equal_mass_gates,
                     "Sort the responses into K gates of equal size, column `mass_gate` (1 lowest), and match within "
                     "gates only. A second table must have that column.");
}

cytometry::EventOptions to_event_options(const EventFlags& flags) {
  cytometry::EventOptions options{
      .scales = {}, .compensate = flags.compensate, .gates = flags.gates, .gates_content = flags.gates_content};
  for (const std::string& text : flags.transforms) options.scales.push_back(cytometry::parse_channel_scale(text));
  return options;
}

std::vector<Table> read_tables(const std::vector<std::string>& paths, const EventFlags& flags, KeepText keep_text,
                               bool quiet) {
  const cytometry::EventOptions options = to_event_options(flags);
  if (std::none_of(paths.begin(), paths.end(), cytometry::has_fcs_extension)) require_fcs(flags);
  std::vector<Table> tables;
  std::vector<std::string> notes;
  for (const std::string& path : paths) tables.push_back(cytometry::read_table(path, options, keep_text, notes));
  require_known_channels(options, tables);
  if (!quiet) {
    for (const std::string& one : notes) note(one);
  }
  return tables;
}

EventReading to_remember(const EventFlags& flags) {
  EventReading reading{.scales = flags.transforms, .compensate = flags.compensate, .gates = flags.gates};
  if (!flags.gates.empty()) reading.gates_content = read_file(flags.gates);
  reading.equal_mass_gates = flags.equal_mass_gates;
  return reading;
}

EventFlags remembered(const EventReading& reading, const EventFlags& given, const std::string& fit) {
  const auto refuse_others = [&](std::string_view option, bool is_given, bool same) {
    if (is_given && !same)
      throw InvalidInput(fmt::format("{}: {} remembers what it was fitted with; leave {} out", option, fit, option));
  };
  // Fits of earlier versions remember nothing.
  if (reading == EventReading{}) return given;
  refuse_others("--transform", !given.transforms.empty(), given.transforms == reading.scales);
  refuse_others("--compensate", given.compensate, reading.compensate);
  refuse_others("--gates", !given.gates.empty(),
                !given.gates.empty() && read_file(given.gates) == reading.gates_content);
  refuse_others("--equal-mass-gates", given.equal_mass_gates > 0, given.equal_mass_gates == reading.equal_mass_gates);
  return {reading.scales, reading.compensate, reading.gates, reading.gates_content, reading.equal_mass_gates};
}

void add_mass_gates(Table& responses, const EventFlags& flags, const std::vector<std::string>& response) {
  if (flags.equal_mass_gates == 0) return;
  if (response.size() != 1) throw InvalidInput("--equal-mass-gates needs exactly one response");
  cytometry::add_equal_mass_gates(responses, response.front(), flags.equal_mass_gates);
}

}  // namespace unshuffle::app
