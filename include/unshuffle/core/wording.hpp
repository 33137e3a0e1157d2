// Messages that mention options, spelled for the front end in use.
//
// The library does not know whether an option came from a command line, from Python or from C++. It marks options in
// its messages, and the front end spells them its own way: `--gw-epsilon`, `gw_epsilon`.
#pragma once

#include <string>
#include <string_view>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class Dialect { cpp, command_line, python };

/// Marks an option, or an option and its value, inside a message: "try {}", option("hint", "rows").
[[nodiscard]] std::string option(std::string_view name, std::string_view value = "");

/// The message with its options spelled for that front end.
[[nodiscard]] std::string in_terms_of(Dialect dialect, std::string_view message);

/// An option's flag on the command line.
[[nodiscard]] std::string flag_of(std::string_view name);

}  // namespace unshuffle
