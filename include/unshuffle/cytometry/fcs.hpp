// Flow cytometry files: FCS 2.0, 3.0 and 3.1 in list mode, one row per event and one column per channel.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {
namespace cytometry UNSHUFFLE_EXPORT {

/// Upper-case name → value; FCS keywords are not case-sensitive.
using Keywords = std::map<std::string, std::string>;

struct FcsChannel {
  std::string name;     ///< $PnN; P1, P2, ... where the file gives none.
  std::string label{};  ///< $PnS, a descriptive name; may be empty.
  int bits = 32;        ///< $PnB.
  double range = 0;     ///< $PnR: stored values are below it.
  double decades = 0;   ///< $PnE: of a logarithmic amplifier; 0: linear.
  double offset = 0;    ///< $PnE: linear value of the stored value 0 of a logarithmic amplifier.
  double gain = 1;      ///< $PnG of a linear amplifier.
};

struct FcsFile {
  std::string source;   ///< File name for messages.
  std::string version;  ///< FCS2.0, FCS3.0, ...
  Keywords keywords;    ///< Of TEXT and of supplemental TEXT.
  std::vector<FcsChannel> channels;
  Matrix events;                   ///< events × channels, on the linear scale: amplifier logarithm and gain undone.
  std::vector<std::string> notes;  ///< One sentence each: inconsistencies in the file and how they were resolved.

  /// Position of a channel by $PnN; throws BadData listing the channels.
  [[nodiscard]] Index channel(const std::string& name) const;
  /// The same; -1 when there is none.
  [[nodiscard]] Index find(const std::string& name) const;
};

/// Throws BadData naming the file, the keyword and its value for anything unreadable. Declared sizes are checked
/// against the file's length before any memory is allocated.
[[nodiscard]] FcsFile read_fcs(const std::string& path);

/// As read_fcs, from memory.
[[nodiscard]] FcsFile parse_fcs(std::string_view content, const std::string& source);

/// An FCS 3.1 file of 32-bit floats, little-endian; of `file` the channels, events and keywords without $ are written.
/// Throws InvalidInput if it would be longer than an FCS header can represent.
[[nodiscard]] std::string to_fcs(const FcsFile& file);

/// Whether a path ends in .fcs, in any case.
[[nodiscard]] bool has_fcs_extension(std::string_view path);

}  // namespace cytometry
}  // namespace unshuffle
