#include "unshuffle/tables/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tables/cells.hpp"
#include "tables/contents.hpp"
#include "tables/dates.hpp"

namespace unshuffle {
namespace {

constexpr std::size_t most_frequent = 5;

void describe_numbers(const std::vector<double>& numbers, ColumnSummary& out) {
  if (numbers.empty()) return;
  const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  out.low = *low;
  out.high = *high;
  double sum = 0;
  for (const double number : numbers) sum += number;
  out.mean = sum / double(numbers.size());
  out.distinct = Index(std::set<double>(numbers.begin(), numbers.end()).size());
}

void describe_text(const Column& column, ColumnSummary& out) {
  const std::map<std::string, Index> counts = levels_of(column);
  out.distinct = Index(counts.size());
  std::vector<std::pair<std::string, Index>> levels(counts.begin(), counts.end());
  std::stable_sort(levels.begin(), levels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (levels.size() > most_frequent) levels.resize(most_frequent);
  for (const auto& [level, count] : levels) out.frequent.push_back(level);
}

/// A mixture is a column of numbers with stray cells.
ColumnSummary describe_as(CodeKind kind, const Table& table, const Column& column) {
  ColumnSummary out{.name = column.name, .kind = kind};
  const ColumnCode code{
      .column = column.name, .kind = kind, .dates = date_order_of(column).value_or(DateOrder::unknown)};
  std::vector<double> numbers;
  for (std::size_t row = 0; row < column.text.size(); ++row) {
    const std::string& cell = column.text[row];
    if (is_missing_in(kind, cell)) {
      ++out.missing;
    } else if (const auto value = cell_value(table, column, cell, code); value && kind != CodeKind::category) {
      numbers.push_back(*value);
    } else if (kind == CodeKind::number && out.stray.empty()) {
      out.stray = fmt::format("\"{}\" in row {}", cell, row + 1);
    }
  }
  if (kind == CodeKind::category) describe_text(column, out);
  describe_numbers(numbers, out);
  return out;
}

}  // namespace

std::vector<ColumnSummary> describe(const Table& table) {
  std::vector<ColumnSummary> all;
  for (const Column& column : table.columns) {
    if (column.numeric()) {
      all.push_back({.name = column.name});
      describe_numbers(column.numbers, all.back());
    } else {
      const CodeKind mixture = column.holds_numbers ? CodeKind::number : CodeKind::category;
      all.push_back(describe_as(kind_of(table, column).value_or(mixture), table, column));
    }
  }
  return all;
}

}  // namespace unshuffle
