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

/// The number that a cell stands for in a column coded in place; none: it stands for none.
[[nodiscard]] std::optional<double> cell_value(const Table& table, const Column& column, const std::string& cell,
                                               const ColumnCode& code);

/// The column that says that the last row is the sum of the others: only its last cell is a word for that. Null: none.
[[nodiscard]] const Column* total_column(const Table& table);

/// How often every level occurs, missing cells apart.
[[nodiscard]] std::map<std::string, Index> levels_of(const Column& column);

/// Whether the cell stands for a value nobody knows, in a column of that kind.
[[nodiscard]] bool is_missing_in(CodeKind kind, const std::string& cell);

}  // namespace unshuffle
