// How a text file lays out its table: separators, comments, and the way it writes numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unshuffle/tables/table.hpp"

namespace unshuffle {

struct Layout {
  TextFormat format{};
  std::vector<std::string_view> stretches{};  ///< The text from its header on without comments, in whole lines.
  long first_line = 1;                        ///< Line of the header.
  long comments = 0;                          ///< Lines left out.
};

/// Judged by the first lines; what is no plain CSV in a consistent way is taken for plain CSV, and its reader
/// complains.
[[nodiscard]] Layout layout_of(std::string_view text);

/// A finite number as the format writes it; none: anything else. Numbers in groups of three digits count only if every
/// group has three.
[[nodiscard]] std::optional<double> parse_number(std::string_view text, const TextFormat& format);

/// How the columns of `table` that were read as text write numbers; none: as plain CSV does, or it cannot be told.
[[nodiscard]] std::optional<TextFormat> number_format_of(const Table& table);

/// "semicolon-separated", "decimal commas" and so on; nothing for plain CSV.
[[nodiscard]] std::vector<std::string> described(const Layout& layout);

}  // namespace unshuffle
