#include "tables/factor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "core/cubic_spline.hpp"
#include "core/text.hpp"
#include "tables/cells.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using Array = Eigen::ArrayXd;
using Kind = Expression::Kind;

bool is_call(const Expression& factor, std::string_view name) {
  return factor.kind == Kind::call && factor.word == name;
}

[[noreturn]] void complain_of(const Expression& factor, std::string_view expected) {
  throw InvalidInput(fmt::format("formula: {}: {}", text_of(factor), expected));
}

/// The argument of that name or place; null: it is not given.
const Expression* argument(const Expression& call, std::string_view name, std::size_t place) {
  for (std::size_t at = 0; at < call.parts.size(); ++at)
    if (call.keywords[at] == name || (call.keywords[at].empty() && at == place)) return &call.parts[at];
  return nullptr;
}

void require_arguments(const Expression& call, const std::vector<std::string_view>& names, std::string_view usage) {
  const bool known = std::all_of(call.keywords.begin(), call.keywords.end(), [&](const std::string& keyword) {
    return keyword.empty() || std::find(names.begin(), names.end(), keyword) != names.end();
  });
  if (!known || call.parts.empty() || call.parts.size() > names.size()) complain_of(call, usage);
}

double constant(const Expression& call, const Expression& part, std::string_view usage) {
  const bool negative = part.kind == Kind::sign && part.word == "-";
  const Expression& number = part.kind == Kind::sign ? part.parts.front() : part;
  if (number.kind != Kind::number) complain_of(call, usage);
  return (negative ? -1 : 1) * parse_number(number.word).value();
}

int whole(const Expression& call, const Expression& part, int least, int most, std::string_view usage) {
  const double number = constant(call, part, usage);
  if (number != std::floor(number) || number < least || number > most) complain_of(call, usage);
  return static_cast<int>(number);
}

bool is_category(const Expression& factor, const Table& table) {
  if (factor.kind == Kind::column) return !table.column(factor.word).numeric();
  return is_call(factor, "C");
}

/// Numbers in ascending order, texts by their bytes.
struct LevelOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    const auto left = parse_number(a), right = parse_number(b);
    if (left && right && *left != *right) return *left < *right;
    return left.has_value() != right.has_value() ? left.has_value() : a < b;
  }
};

/// What a category counts as a level of each row.
std::vector<std::string> level_cells(const Expression& factor, const Table& table) {
  const Expression& of = is_call(factor, "C") ? factor.parts.front() : factor;
  std::vector<std::string> cells(static_cast<std::size_t>(table.rows));
  if (of.kind == Kind::column) {
    const Column& column = table.column(of.word);
    if (!column.text.empty()) return column.text;
    for (std::size_t row = 0; row < cells.size(); ++row) append_number(cells[row], column.numbers[row]);
    return cells;
  }
  const Array values = values_of(of, table);
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const double value = values[static_cast<Index>(row)];
    if (is_comparison(of)) {
      cells[row] = value != 0 ? "True" : "False";
    } else {
      append_number(cells[row], value);
    }
  }
  return cells;
}

constexpr std::string_view category_usage =
    "C(column), C(column, Treatment(\"level\")) or C(column, levels=[...]) was expected";

std::string level_text(const Expression& call, const Expression& part) {
  if (part.kind == Kind::text) return part.word;
  std::string text;
  append_number(text, constant(call, part, category_usage));
  return text;
}

std::vector<std::string> levels_of_factor(const Expression& factor, const Table& table) {
  const Expression* given = is_call(factor, "C") ? argument(factor, "levels", 99) : nullptr;
  std::vector<std::string> levels;
  if (given != nullptr) {
    for (const Expression& part : given->parts) levels.push_back(level_text(factor, part));
    if (given->kind != Kind::list || levels.size() < 2) complain_of(factor, category_usage);
    return levels;
  }
  std::set<std::string, LevelOrder> sorted;
  for (const std::string& cell : level_cells(factor, table))
    if (!is_missing(cell)) sorted.insert(cell);
  return {sorted.begin(), sorted.end()};
}

/// Given by Treatment("level") or contr.treatment(base="level"); else the first.
std::string reference_of(const Expression& factor, const std::vector<std::string>& levels) {
  if (!is_call(factor, "C")) return levels.front();
  require_arguments(factor, {"data", "contrasts", "levels"}, category_usage);
  const Expression* contrasts = argument(factor, "contrasts", 1);
  if (contrasts == nullptr) return levels.front();
  if (contrasts->kind != Kind::call || (contrasts->word != "Treatment" && contrasts->word != "contr.treatment"))
    complain_of(factor, category_usage);
  if (contrasts->parts.size() != 1) complain_of(factor, category_usage);
  const std::string reference = level_text(factor, contrasts->parts.front());
  if (std::find(levels.begin(), levels.end(), reference) == levels.end())
    throw BadData(fmt::format("formula: {}: there is no level \"{}\"; there are {}", text_of(factor), reference,
                              fmt::join(levels, ", ")));
  return reference;
}

FittedFactor learn_category(const Expression& factor, const Table& table) {
  FittedFactor fitted{.name = name_of(factor)};
  fitted.levels = levels_of_factor(factor, table);
  if (fitted.levels.size() < 2)
    throw BadData(fmt::format("{}: {} holds {} only; a category has two levels or more", table.source, fitted.name,
                              fitted.levels.empty() ? "missing values" : "\"" + fitted.levels.front() + "\""));
  fitted.reference = reference_of(factor, fitted.levels);
  return fitted;
}

constexpr std::string_view spline_usage =
    "bs(column, df) with df from 3 columns on, or bs(column, knots=[...]), was expected; splines are cubic";

/// Breakpoints of the spline.
std::vector<double> learn_spline(const Expression& call, const Table& table) {
  require_arguments(call, {"x", "df", "knots"}, spline_usage);
  const Array values = values_of(call.parts.front(), table);
  if (!(values.minCoeff() < values.maxCoeff()))
    throw BadData(fmt::format("{}: {} is constant; a spline needs at least two different values", table.source,
                              text_of(call.parts.front())));
  const Expression* df = argument(call, "df", 1);
  const Expression* knots = argument(call, "knots", 2);
  if ((df == nullptr) == (knots == nullptr)) complain_of(call, spline_usage);
  constexpr int least = 3, most = 1000;
  if (df != nullptr) return spline_breakpoints(values.matrix(), whole(call, *df, least, most, spline_usage) - least);
  if (knots->kind != Kind::list) complain_of(call, spline_usage);
  std::vector<double> breakpoints{values.minCoeff()};
  for (const Expression& part : knots->parts) breakpoints.push_back(constant(call, part, spline_usage));
  breakpoints.push_back(values.maxCoeff());
  for (std::size_t at = 1; at < breakpoints.size(); ++at)
    if (!(breakpoints[at - 1] < breakpoints[at])) complain_of(call, "knots ascend and lie within the values");
  return breakpoints;
}

constexpr std::string_view polynomial_usage = "poly(column, degree) or poly(column, degree, raw=True) was expected";

bool is_raw(const Expression& call) {
  const Expression* raw = argument(call, "raw", 2);
  if (raw == nullptr) return false;
  if (raw->word != "True" && raw->word != "False" && raw->word != "TRUE" && raw->word != "FALSE")
    complain_of(call, polynomial_usage);
  return raw->word == "True" || raw->word == "TRUE";
}

int degree_of(const Expression& call) {
  require_arguments(call, {"x", "degree", "raw"}, polynomial_usage);
  constexpr int most = 20;
  const Expression* degree = argument(call, "degree", 1);
  return degree == nullptr ? 1 : whole(call, *degree, 1, most, polynomial_usage);
}

// Polynomials orthogonal on the values of the fit, by their recurrence P_k = (x - a_{k-1}) P_{k-1} - b_{k-1} P_{k-2}
// with a_k = Σ x P_k² / Σ P_k² and b_k = Σ P_k² / Σ P_{k-1}². Learned are a_0 .. a_{d-1} and Σ P_0² .. Σ P_d².
std::vector<double> learn_polynomial(const Expression& call, const Array& values) {
  if (is_raw(call)) return {};
  const int degree = degree_of(call);
  std::vector<double> centres, squares{static_cast<double>(values.size())};
  Array before = Array::Zero(values.size()), now = Array::Ones(values.size());
  for (int k = 1; k <= degree; ++k) {
    centres.push_back((values * now.square()).sum() / squares.back());
    const double ratio = k > 1 ? squares[std::size_t(k) - 1] / squares[std::size_t(k) - 2] : 0;
    const Array next = (values - centres.back()) * now - ratio * before;
    before = std::exchange(now, next);
    squares.push_back(now.square().sum());
  }
  centres.insert(centres.end(), squares.begin(), squares.end());
  return centres;
}

std::vector<Array> polynomials(const Expression& call, const FittedFactor& fitted, const Array& values) {
  const int degree = degree_of(call);
  std::vector<Array> made;
  if (is_raw(call)) {
    for (int k = 1; k <= degree; ++k) made.emplace_back(values.pow(k));
    return made;
  }
  const double* squares = fitted.numbers.data() + degree;
  Array before = Array::Zero(values.size()), now = Array::Ones(values.size());
  for (int k = 1; k <= degree; ++k) {
    const double ratio = k > 1 ? squares[k - 1] / squares[k - 2] : 0;
    const Array next = (values - fitted.numbers[std::size_t(k) - 1]) * now - ratio * before;
    before = std::exchange(now, next);
    made.emplace_back(now / std::sqrt(squares[k]));
  }
  return made;
}

std::vector<double> learn_scale(const Expression& call, const Array& values) {
  require_arguments(call, {"x"}, fmt::format("{}() takes one column", call.word));
  const double mean = values.mean();
  if (call.word == "center") return {mean, 1};
  return {mean, std::sqrt((values - mean).square().sum() / static_cast<double>(values.size() - 1))};
}

std::vector<std::string> counted(std::size_t first, std::size_t count) {
  std::vector<std::string> endings;
  for (std::size_t at = first; at < first + count; ++at) endings.push_back(fmt::format("[{}]", at));
  return endings;
}

std::vector<Array> category_columns(const Expression& factor, const FittedFactor& fitted, bool reduced,
                                    const Table& table) {
  const std::vector<Index> levels = levels_in(factor, fitted, table);
  std::vector<Array> made;
  for (std::size_t level = 0; level < fitted.levels.size(); ++level) {
    if (reduced && fitted.levels[level] == fitted.reference) continue;
    Array column = Array::Zero(table.rows);
    for (std::size_t row = 0; row < levels.size(); ++row)
      if (levels[row] == static_cast<Index>(level)) column[static_cast<Index>(row)] = 1;
    made.push_back(std::move(column));
  }
  return made;
}

}  // namespace

bool makes_category(const Expression& factor) { return is_call(factor, "C"); }

FittedFactor learn_factor(const Expression& factor, const Table& table) {
  if (is_call(factor, "C") && (factor.parts.empty() || !factor.keywords.front().empty()))
    complain_of(factor, category_usage);
  if (is_category(factor, table)) return learn_category(factor, table);
  FittedFactor fitted{.name = name_of(factor)};
  if (is_call(factor, "bs")) {
    fitted.numbers = learn_spline(factor, table);
  } else if (is_call(factor, "poly")) {
    (void)degree_of(factor);
    fitted.numbers = learn_polynomial(factor, values_of(factor.parts.front(), table));
  } else if (is_call(factor, "center") || is_call(factor, "scale")) {
    if (factor.parts.empty()) complain_of(factor, "a column was expected");
    fitted.numbers = learn_scale(factor, values_of(factor.parts.front(), table));
  }
  return fitted;
}

bool is_complete(const Expression& factor, const FittedFactor& fitted) {
  const std::vector<double>& numbers = fitted.numbers;
  if (!fitted.levels.empty())
    return std::find(fitted.levels.begin(), fitted.levels.end(), fitted.reference) != fitted.levels.end();
  if (is_call(factor, "C")) return false;
  if (is_call(factor, "bs"))
    return numbers.size() >= 2 &&
           std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
  if (is_call(factor, "poly"))
    return is_raw(factor) || numbers.size() == 2 * static_cast<std::size_t>(degree_of(factor)) + 1;
  return (!is_call(factor, "center") && !is_call(factor, "scale")) || numbers.size() == 2;
}

std::vector<std::string> endings_of(const Expression& factor, const FittedFactor& fitted, bool reduced) {
  if (is_call(factor, "bs")) return counted(1, fitted.numbers.size() + 1);
  if (is_call(factor, "poly")) return counted(is_raw(factor) ? 0 : 1, static_cast<std::size_t>(degree_of(factor)));
  if (fitted.levels.empty()) return {""};
  std::vector<std::string> endings;
  for (const std::string& level : fitted.levels)
    if (!reduced || level != fitted.reference) endings.push_back(fmt::format("[{}{}]", reduced ? "T." : "", level));
  return endings;
}

std::vector<Index> levels_in(const Expression& factor, const FittedFactor& fitted, const Table& table) {
  std::vector<Index> places;
  for (const std::string& cell : level_cells(factor, table)) {
    const auto found = std::find(fitted.levels.begin(), fitted.levels.end(), cell);
    places.push_back(found == fitted.levels.end() ? -1 : found - fitted.levels.begin());
  }
  return places;
}

std::vector<Eigen::ArrayXd> columns_of(const Expression& factor, const FittedFactor& fitted, bool reduced,
                                       const Table& table) {
  if (!fitted.levels.empty()) return category_columns(factor, fitted, reduced, table);
  if (is_call(factor, "bs")) {
    const Matrix splines = cubic_splines(fitted.numbers, values_of(factor.parts.front(), table).matrix());
    std::vector<Array> made;
    for (Index k = 1; k < splines.cols(); ++k) made.emplace_back(splines.col(k));
    return made;
  }
  if (is_call(factor, "poly")) return polynomials(factor, fitted, values_of(factor.parts.front(), table));
  if (is_call(factor, "center") || is_call(factor, "scale"))
    return {(values_of(factor.parts.front(), table) - fitted.numbers[0]) / fitted.numbers[1]};
  return {values_of(factor, table)};
}

}  // namespace unshuffle
