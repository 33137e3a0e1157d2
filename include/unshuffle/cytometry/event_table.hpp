// Events as a table, so that cytometry files are accepted wherever CSV files are.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {
namespace cytometry UNSHUFFLE_EXPORT {

/// Name of the column that says in which gates of a Gating-ML file an event is.
inline constexpr const char* gates_column = "gates";

/// Name of the column of equal-mass gates.
inline constexpr const char* mass_gate_column = "mass_gate";

/// Scale of one channel, or of every channel that has none of its own when `channel` is empty.
struct ChannelScale {
  std::string channel;
  std::string scale;  ///< As parse_scale wants it.
};

struct EventOptions {
  std::vector<ChannelScale> scales{};  ///< Empty: all linear.
  bool compensate = false;             ///< Undo the file's own spillover first.
  std::string gates{};                 ///< Gating-ML file; adds the text column `gates`.
  std::string gates_content{};         ///< What that file holds, if it was read before.
};

/// CHANNEL=SCALE or SCALE.
[[nodiscard]] ChannelScale parse_channel_scale(const std::string& text);

/// One column per channel by $PnN, with $PnS as its label, and one row per event. Gates see the events as the file has
/// them, whatever the scales. A column with a value that is not finite on its scale has a fault that names the event.
[[nodiscard]] Table event_table(FcsFile file, const EventOptions& options);

/// The file as a table: FCS if its name ends in .fcs, NumPy if in .npy, else CSV. Irregularities of an FCS file, and
/// how a text file differs from plain CSV, are added to `notes`.
[[nodiscard]] Table read_table(const std::string& path, const EventOptions& options, KeepText keep_text,
                               std::vector<std::string>& notes);

/// Adds the text column mass_gate: 1 … count by rank of the named column. Throws BadData when there is one already.
void add_equal_mass_gates(Table& table, const std::string& column, Index count);

}  // namespace cytometry
}  // namespace unshuffle
