#include "tables/contents.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "tables/cells.hpp"
#include "tables/dates.hpp"
#include "tables/numbers.hpp"

namespace unshuffle {

std::optional<CodeKind> kind_of(const Table& table, const Column& column) {
  Index numbers = 0, truths = 0, cells = 0, levels = 0;
  for (const std::string& cell : column.text) {
    if (!is_missing(cell)) ++levels;
    if (is_missing_number(cell)) continue;
    ++cells;
    if (number_in(table, column, cell)) ++numbers;
    if (truth_value(cell)) ++truths;
  }
  if (cells > 0 && numbers == cells) return CodeKind::number;
  if (cells > 0 && truths == cells) return CodeKind::truth;
  if (date_order_of(column)) return CodeKind::date;
  return levels > 0 && numbers == 0 ? std::optional(CodeKind::category) : std::nullopt;
}

std::optional<double> cell_value(const Table& table, const Column& column, const std::string& cell,
                                 const ColumnCode& code) {
  if (code.kind == CodeKind::date) return parse_date(cell, code.dates);
  if (code.kind == CodeKind::number) return number_in(table, column, cell);
  const auto truth = truth_value(cell);
  return truth ? std::optional(*truth ? 1.0 : 0.0) : std::nullopt;
}

const Column* total_column(const Table& table) {
  const auto says = [](const Column& column) {
    return !column.text.empty() && says_total(column.text.back()) &&
           std::none_of(column.text.begin(), std::prev(column.text.end()), says_total);
  };
  const auto found = std::find_if(table.columns.begin(), table.columns.end(), says);
  return table.rows < 2 || found == table.columns.end() ? nullptr : &*found;
}

std::map<std::string, Index> levels_of(const Column& column) {
  std::unordered_map<std::string_view, Index> counts;
  for (const std::string& cell : column.text)
    if (!is_missing(cell)) ++counts[cell];
  return {counts.begin(), counts.end()};
}

bool is_missing_in(CodeKind kind, const std::string& cell) {
  return kind == CodeKind::category ? is_missing(cell) : is_missing_number(cell);
}

}  // namespace unshuffle
