// unshuffle gate: which events of a cytometry file are in which gates.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.hpp"
#include "options.hpp"
#include "say.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/cytometry/gating.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::app {
namespace {

struct GateCommand {
  std::string events;
  std::string gates;
  std::string out;
  bool quiet = false;
  bool spreadsheet_safe = false;
};

std::string membership_csv(const cytometry::GateSet& gates, const cytometry::Membership& inside, Index events,
                           bool spreadsheet_safe) {
  std::string out;
  for (std::size_t gate = 0; gate < inside.size(); ++gate) {
    out += (gate > 0 ? "," : "") + csv_cell(gates.gates[gate].id, spreadsheet_safe);
  }
  out += '\n';
  for (std::size_t event = 0; event < static_cast<std::size_t>(events); ++event) {
    for (std::size_t gate = 0; gate < inside.size(); ++gate) {
      if (gate > 0) out += ',';
      out += inside[gate][event] ? '1' : '0';
    }
    out += '\n';
  }
  return out;
}

int run(const GateCommand& command) {
  require_outputs({{"--out", command.out}}, {command.events, command.gates});
  const cytometry::GateSet gates = cytometry::read_gating_ml(command.gates);
  const cytometry::FcsFile file = cytometry::read_fcs(command.events);
  const cytometry::Membership inside = cytometry::membership(gates, file);
  if (!command.quiet) tell_of_replaced({{"--out", command.out}});
  if (!command.out.empty())
    write_whole_file(command.out, membership_csv(gates, inside, file.events.rows(), command.spreadsheet_safe));
  if (command.quiet) return 0;
  for (const std::string& one : file.notes) note(one);
  for (std::size_t gate = 0; gate < inside.size(); ++gate) {
    const auto count = std::count(inside[gate].begin(), inside[gate].end(), true);
    const double share = file.events.rows() > 0 ? 100.0 * static_cast<double>(count) / double(file.events.rows()) : 0;
    say(fmt::format("{:<24}{:>10} events  {:6.2f} %\n", gates.gates[gate].id, count, share));
  }
  if (!command.out.empty()) fmt::print("Wrote {}\n", command.out);
  return 0;
}

}  // namespace

Command add_gate(CLI::App& root) {
  CLI::App* app = root.add_subcommand("gate", "Count the events of a cytometry file in each gate.");
  const auto command = std::make_shared<GateCommand>();
  app->add_option("EVENTS", command->events, "FCS file.")->required();
  app->add_option("GATES", command->gates, "Gating-ML 2.0 file.")->required();
  app->add_option("--out", command->out, "Write CSV: a column per gate, a row per event, 1 inside and 0 outside.");
  add_spreadsheet_option(*app, command->spreadsheet_safe);
  app->add_flag("--quiet", command->quiet, "Print errors only.");
  app->footer("Example:\n  unshuffle gate sample.fcs gates.xml --out membership.csv");
  return {app, [command] { return run(*command); }};
}

}  // namespace unshuffle::app
