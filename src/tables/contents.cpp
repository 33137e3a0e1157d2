#include "tables/contents.hpp"

#include <unordered_map>

#include "tables/cells.hpp"
#include "tables/layout.hpp"

namespace unshuffle {

std::optional<CodeKind> kind_of(const Table& table, const Column& column) {
  Index numbers = 0, truths = 0, cells = 0, levels = 0;
  for (const std::string& cell : column.text) {
    if (!is_missing(cell)) ++levels;
    if (is_missing_number(cell)) continue;
    ++cells;
    if (parse_number(cell, table.format)) ++numbers;
    if (truth_value(cell)) ++truths;
  }
  if (cells > 0 && numbers == cells) return CodeKind::number;
  if (cells > 0 && truths == cells) return CodeKind::truth;
  return levels > 0 && numbers == 0 ? std::optional(CodeKind::category) : std::nullopt;
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
