#include "unshuffle/tables/column_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/text.hpp"
#include "tables/cells.hpp"
#include "tables/contents.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

constexpr double unknown_number = std::numeric_limits<double>::quiet_NaN();

Column number_column(const std::string& name, std::size_t rows) {
  Column column{.name = name};
  column.holds_numbers = true;
  column.numbers.assign(rows, 0);
  return column;
}

/// Line numbers of single cells are not kept; the row is told.
[[noreturn]] void complain_of_cell(const Table& table, std::size_t row, const Column& column,
                                   const std::string& expected) {
  throw BadData(fmt::format("{}, row {}: column \"{}\" holds \"{}\"; {}", table.source, row + 1, column.name,
                            column.text[row], expected));
}

double number_of(const Table& table, const Column& column, std::size_t row, const ColumnCode& code) {
  if (const auto value = cell_value(table, column, column.text[row], code)) return *value;
  if (code.kind == CodeKind::truth) complain_of_cell(table, row, column, "TRUE or FALSE, yes or no was expected");
  if (code.kind == CodeKind::date)
    complain_of_cell(table, row, column, fmt::format("a date was expected, {}", name_of(code.dates)));
  complain_of_cell(table, row, column, "a number was expected");
}

/// Truth values, dates and numbers: one column under the same name.
std::vector<Column> coded_in_place(const Table& table, const Column& column, const ColumnCode& code) {
  const auto rows = static_cast<std::size_t>(table.rows);
  std::vector<Column> made{number_column(code.column, rows)};
  if (code.indicator) made.push_back(number_column(coded_names(code).back(), rows));
  for (std::size_t row = 0; row < rows; ++row) {
    const bool missing = !column.text.empty() && is_missing_number(column.text[row]);
    if (missing) {
      made.front().numbers[row] = code.indicator ? code.fill : unknown_number;
      if (code.indicator) made.back().numbers[row] = 1;
    } else {
      const bool plain = column.text.empty() || (column.numeric() && code.kind == CodeKind::number);
      made.front().numbers[row] = plain ? column.numbers[row] : number_of(table, column, row, code);
    }
  }
  made.front().text = column.text;
  return made;
}

std::string unseen_level(const ColumnCode& code, const std::string& cell) {
  constexpr std::size_t shown = 10;
  const std::vector<std::string> first(code.levels.begin(),
                                       code.levels.begin() + static_cast<long>(std::min(shown, code.levels.size())));
  return fmt::format("the fit knows the levels {}{} only{}", fmt::join(first, ", "),
                     code.levels.size() > shown ? ", ..." : "", did_you_mean(cell, code.levels));
}

std::vector<Column> coded_as_category(const Table& table, const Column& column, const ColumnCode& code) {
  const auto rows = static_cast<std::size_t>(table.rows);
  std::vector<Column> made;
  for (const std::string& name : coded_names(code)) made.push_back(number_column(name, rows));
  std::unordered_map<std::string_view, std::size_t> place;
  for (std::size_t at = 0; at < code.levels.size(); ++at) place.emplace(code.levels[at], at);
  for (std::size_t row = 0; row < rows; ++row) {
    std::string cell;
    if (column.text.empty()) {
      append_number(cell, column.numbers[row]);
    } else {
      cell = column.text[row];
    }
    const auto found = place.find(cell);
    if (found != place.end()) {
      if (found->second > 0) made[found->second - 1].numbers[row] = 1;
    } else if (!is_missing(cell)) {
      throw BadData(fmt::format("{}, row {}: column \"{}\" holds \"{}\"; {}", table.source, row + 1, column.name, cell,
                                unseen_level(code, cell)));
    } else if (code.indicator) {
      made.back().numbers[row] = 1;
    } else {
      for (Column& dummy : made) dummy.numbers[row] = unknown_number;
    }
  }
  return made;
}

}  // namespace

std::string name_of(CodeKind kind) {
  switch (kind) {
    case CodeKind::truth:
      return "truth";
    case CodeKind::date:
      return "date";
    case CodeKind::category:
      return "category";
    default:
      return "number";
  }
}

std::string name_of(DateOrder order) {
  switch (order) {
    case DateOrder::year_first:
      return "year-first";
    case DateOrder::day_first:
      return "day-first";
    case DateOrder::month_first:
      return "month-first";
    default:
      return "unknown";
  }
}

std::vector<std::string> coded_names(const ColumnCode& code) {
  std::vector<std::string> names;
  if (code.kind != CodeKind::category) names.push_back(code.column);
  for (std::size_t at = 1; at < code.levels.size(); ++at)
    names.push_back(fmt::format("{}[T.{}]", code.column, code.levels[at]));
  if (code.indicator) names.push_back(code.column + "[missing]");
  return names;
}

void apply_codes(Table& table, const std::vector<ColumnCode>& codes) {
  for (const ColumnCode& code : codes) {
    const Column& column = table.column(code.column);
    std::vector<Column> made =
        code.kind == CodeKind::category ? coded_as_category(table, column, code) : coded_in_place(table, column, code);
    for (Column& one : made) {
      const auto same = std::find_if(table.columns.begin(), table.columns.end(),
                                     [&](const Column& other) { return other.name == one.name; });
      if (same == table.columns.end()) {
        table.columns.push_back(std::move(one));
      } else if (one.name == code.column) {
        *same = std::move(one);
      } else {
        throw BadData(fmt::format("{}: column \"{}\" has the name of a level of \"{}\"; rename it", table.source,
                                  one.name, code.column));
      }
    }
  }
}

}  // namespace unshuffle
