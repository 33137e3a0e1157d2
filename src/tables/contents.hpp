// What the cells of a column of text are.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "unshuffle/tables/column_code.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {

/// Of a column that is not numeric; none: a mixture of numbers and other text, or nothing at all.
[[nodiscard]] std::optional<CodeKind> kind_of(const Table& table, const Column& column);

/// How often every level occurs, missing cells apart.
[[nodiscard]] std::map<std::string, Index> levels_of(const Column& column);

/// Whether the cell stands for a value nobody knows, in a column of that kind.
[[nodiscard]] bool is_missing_in(CodeKind kind, const std::string& cell);

}  // namespace unshuffle
