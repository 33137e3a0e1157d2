// Options for FCS files, which are accepted wherever CSV files are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle::app {

struct EventFlags {
  std::vector<std::string> transforms;  ///< CHANNEL=SCALE, or SCALE for every other channel.
  bool compensate = false;
  std::string gates;          ///< Gating-ML file.
  std::string gates_content;  ///< Of that file, if a fit remembers it.
  long equal_mass_gates = 0;  ///< 0: none.
};

/// --transform and --compensate.
void add_scale_options(CLI::App& command, EventFlags& flags);

/// --gates and --equal-mass-gates.
void add_gate_options(CLI::App& command, EventFlags& flags);

[[nodiscard]] cytometry::EventOptions to_event_options(const EventFlags& flags);

/// The tables of these files in order, FCS or CSV by file name. Notes go to stderr unless quiet; an option without
/// effect is rejected.
[[nodiscard]] std::vector<Table> read_tables(const std::vector<std::string>& paths, const EventFlags& flags,
                                             KeepText keep_text, bool quiet);

/// What fit.json remembers of the flags.
[[nodiscard]] EventReading to_remember(const EventFlags& flags);

/// The flags of a fit, for its other tables. Throws InvalidInput where the command line gives others than the fit had.
[[nodiscard]] EventFlags remembered(const EventReading& reading, const EventFlags& given, const std::string& fit);

/// Adds the gates of --equal-mass-gates to the response table.
void add_mass_gates(Table& responses, const EventFlags& flags, const std::vector<std::string>& response);

}  // namespace unshuffle::app
