// How a column as written becomes columns of numbers.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class CodeKind {
  number,    ///< As it is.
  truth,     ///< TRUE and yes are 1, FALSE and no are 0.
  date,      ///< Days since 1970-01-01.
  category,  ///< A column of 0 and 1 for every level but the reference, NAME[T.LEVEL].
};

/// How a column writes dates; those of a few days may be read in two ways.
enum class DateOrder { unknown, year_first, day_first, month_first };

struct ColumnCode {
  std::string column;
  bool response_side = false;  ///< Of the response table.
  CodeKind kind = CodeKind::number;
  std::vector<std::string> levels{};     ///< Of a category; the reference first.
  DateOrder dates = DateOrder::unknown;  ///< Of a date.
  bool indicator = false;                ///< A column NAME[missing] is 1 where a cell is missing.
  double fill = 0;                       ///< Stands for missing numbers if there is an indicator.
};

[[nodiscard]] std::string name_of(CodeKind kind);

/// year-first, day-first or month-first.
[[nodiscard]] std::string name_of(DateOrder order);

/// Names of the columns that the code makes.
[[nodiscard]] std::vector<std::string> coded_names(const ColumnCode& code);

/// Adds the columns of each code to the table, or replaces its column where the name stays. Throws BadData naming line
/// and cell for a level that is not among those of the code. Missing cells without an indicator become NaN.
void apply_codes(Table& table, const std::vector<ColumnCode>& codes);

}  // namespace unshuffle
