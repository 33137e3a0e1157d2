// A first look at a table: what each column holds.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/column_code.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

struct ColumnSummary {
  std::string name;
  CodeKind kind = CodeKind::number;
  Index missing = 0;
  Index distinct = 0;                   ///< Different values, missing ones aside.
  double low = 0, mean = 0, high = 0;   ///< Of numbers and dates; of truth values, TRUE is 1.
  std::vector<std::string> frequent{};  ///< Up to five texts, the most frequent first.
  std::string stray{};                  ///< The first text among numbers, with its line; empty: none.
};

/// One per column. A column with numbers and a few other texts is one of numbers with a stray cell. Columns of text
/// must have been read with KeepText::always or hold text.
[[nodiscard]] std::vector<ColumnSummary> describe(const Table& table);

}  // namespace unshuffle
