// How a text file lays out its table: separators, comments, and the way it writes numbers.
#pragma once

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
enum class Separators { signs, spaces };
[[nodiscard]] Layout layout_of(std::string_view text, Separators separators = Separators::signs);

/// A table whose cells are separated by spaces, as R and Fortran write them, with one space between cells; empty: it is
/// none. A column of it holds numbers, or any text would be one.
[[nodiscard]] std::string single_spaced(std::string_view text);

/// "semicolon-separated", "decimal commas" and so on; nothing for plain CSV.
[[nodiscard]] std::vector<std::string> described(const Layout& layout);

}  // namespace unshuffle
