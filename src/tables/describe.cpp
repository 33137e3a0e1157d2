#include "unshuffle/tables/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tables/cells.hpp"
#include "tables/layout.hpp"

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

void describe_text(const std::vector<std::string>& cells, ColumnSummary& out) {
  std::map<std::string, Index> counts;
  for (const std::string& cell : cells) {
    if (!is_missing(cell)) ++counts[cell];
  }
  out.distinct = Index(counts.size());
  std::vector<std::pair<std::string, Index>> levels(counts.begin(), counts.end());
  std::stable_sort(levels.begin(), levels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (levels.size() > most_frequent) levels.resize(most_frequent);
  for (const auto& [level, count] : levels) out.frequent.push_back(level);
}

/// Cells that are numbers, or truth values if all that are not missing are.
ColumnSummary describe_mixed(const Column& column, const TextFormat& format) {
  ColumnSummary out{.name = column.name, .kind = column.holds_numbers ? ColumnKind::number : ColumnKind::truth};
  std::vector<double> numbers;
  for (std::size_t row = 0; row < column.text.size(); ++row) {
    const std::string& cell = column.text[row];
    if (column.holds_numbers ? is_missing_number(cell) : is_missing(cell)) {
      ++out.missing;
    } else if (const auto number = parse_number(cell, format); column.holds_numbers && number) {
      numbers.push_back(*number);
    } else if (const auto truth = truth_value(cell); !column.holds_numbers && truth) {
      numbers.push_back(*truth ? 1 : 0);
    } else if (column.holds_numbers) {
      if (out.stray.empty()) out.stray = fmt::format("\"{}\" in row {}", cell, row + 1);
    } else {
      out.kind = ColumnKind::text;
    }
  }
  if (out.kind == ColumnKind::text || numbers.empty()) {
    out.kind = ColumnKind::text;
    describe_text(column.text, out);
  } else {
    describe_numbers(numbers, out);
  }
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
      all.push_back(describe_mixed(column, table.format));
    }
  }
  return all;
}

std::string name_of(ColumnKind kind) {
  if (kind == ColumnKind::number) return "number";
  return kind == ColumnKind::truth ? "true or false" : "text";
}

}  // namespace unshuffle
