// How the cells of text files write numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unshuffle/tables/table.hpp"

namespace unshuffle {

/// A finite number as the format writes it; none: anything else. Numbers in groups of three digits count only if every
/// group has three.
[[nodiscard]] std::optional<double> parse_number(std::string_view text, const TextFormat& format);

/// The same of a cell of a column, whose unit may stand before or behind it.
[[nodiscard]] std::optional<double> number_in(const Table& table, const Column& column, std::string_view cell);

/// How the columns of `table` that were read as text write numbers; none: as plain CSV does, or it cannot be told.
[[nodiscard]] std::optional<TextFormat> number_format_of(const Table& table);

/// The sign of money, or %, that every number of a column of text has, zeros aside; empty: there is none.
[[nodiscard]] std::string unit_of(const Column& column);

/// The number alone, with a minus where it stood in parentheses; the cell as it is where it does not have the unit.
[[nodiscard]] std::string without_unit(std::string_view cell, std::string_view unit);

}  // namespace unshuffle
