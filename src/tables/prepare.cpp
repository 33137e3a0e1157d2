#include "unshuffle/tables/prepare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tables/cells.hpp"
#include "tables/contents.hpp"
#include "tables/dates.hpp"
#include "tables/design.hpp"
#include "tables/numbers.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using ColumnNames = std::vector<std::string>;

constexpr std::size_t most_levels = 50;

/// The columns of one table that are used, by role.
struct UsedColumns {
  ColumnNames given;  ///< Response and weights: used whatever they hold.
  ColumnNames features;
  ColumnNames named;         ///< Features that are never left out, in a table whose others are open.
  bool open = false;         ///< The features were not named: what looks like no feature is left out.
  std::string option;        ///< That names them.
  bool by_formula = false;   ///< Which makes categories columns of numbers.
  ColumnNames categories{};  ///< Columns that are categories even if they hold numbers.
};

bool contains(const ColumnNames& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Columns of this side with another role than that of a feature.
ColumnNames columns_with_a_role(const ColumnChoice& columns, bool response_side) {
  ColumnNames names;
  if (response_side) names = columns.response;
  names.push_back(columns.weights);
  const ColumnNames of_rows = columns.rows.names();
  names.insert(names.end(), of_rows.begin(), of_rows.end());
  for (const GroupKey& key : columns.groups) names.push_back(response_side ? key.response_column : key.feature_column);
  for (const SoftGroup& group : columns.soft_groups)
    names.push_back(response_side ? group.key.response_column : group.key.feature_column);
  return names;
}

UsedColumns used_columns(const Table& table, const ColumnChoice& columns, bool response_side) {
  UsedColumns used{.given = {}, .features = {}, .named = {}, .open = false, .option = response_side ? "--x" : "--z"};
  if (response_side) used.given = columns.response;
  if (table.find(columns.weights) != nullptr) used.given.push_back(columns.weights);
  const auto& named = response_side ? columns.x : columns.z;
  for (const std::string& name : columns.rows.names())
    if (table.find(name) != nullptr && !(named && contains(*named, name))) used.given.push_back(name);
  if (named) {
    used.features = *named;
    return used;
  }
  used.open = true;
  const ColumnNames roles = columns_with_a_role(columns, response_side);
  for (const Column& column : table.columns)
    if (!contains(roles, column.name) && !column.only_key) used.features.push_back(column.name);
  return used;
}

/// Both sides of a table whose response may be shuffled.
UsedColumns used_columns_of_one_table(const Table& table, const ColumnChoice& columns) {
  UsedColumns used = used_columns(table, columns, false);
  used.given.insert(used.given.end(), columns.response.begin(), columns.response.end());
  used.named = columns.x.value_or(ColumnNames{});
  ColumnNames roles = columns_with_a_role(columns, true);
  roles.insert(roles.end(), used.named.begin(), used.named.end());
  if (used.open) std::erase_if(used.features, [&](const std::string& name) { return contains(roles, name); });
  return used;
}

/// 0, 1, 2, ... or 1, 2, 3, ... in any order. In a short table that may well be a feature.
bool is_row_number(const Column& column) {
  constexpr std::size_t short_table = 20;
  const std::size_t rows = column.numbers.size();
  if (!column.numeric() || rows < short_table) return false;
  const double first = *std::min_element(column.numbers.begin(), column.numbers.end());
  if (first != 0 && first != 1) return false;
  std::vector<bool> seen(rows);
  for (const double number : column.numbers) {
    const double place = number - first;
    if (place != std::floor(place) || place >= static_cast<double>(rows)) return false;
    if (seen[static_cast<std::size_t>(place)]) return false;
    seen[static_cast<std::size_t>(place)] = true;
  }
  return true;
}

/// Why an open column is no feature; empty: it is one.
std::string reason_to_leave_out(const Table& table, const Column& column, const std::string& option) {
  const std::string use = fmt::format("name it with {} to use it", option);
  if (column.numeric()) return is_row_number(column) ? "looks like a row number: left out; " + use : "";
  const auto levels = levels_of(column);
  const std::optional<CodeKind> kind = kind_of(table, column);
  if (levels.empty()) return "holds no values: left out";
  if (kind == CodeKind::date)
    return fmt::format("holds dates such as {}: left out; {} in days since 1970-01-01", levels.begin()->first, use);
  Index cells = 0;
  for (const auto& [level, count] : levels) cells += count;
  if (levels.size() == 1 && kind != CodeKind::number)
    return fmt::format("holds \"{}\" in every row: left out", levels.begin()->first);
  if (kind != CodeKind::category) return "";
  if (static_cast<Index>(levels.size()) == cells)
    return "has another text in every row: left out; use it as a key with --group";
  if (levels.size() > most_levels)
    return fmt::format("has {} levels: left out; {}, or use it as a key with --group", levels.size(), use);
  return "";
}

/// The most frequent level first, the others by name.
ColumnNames ordered_levels(const std::map<std::string, Index>& counts) {
  const auto reference =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  ColumnNames levels{reference->first};
  for (const auto& [level, count] : counts)
    if (level != reference->first) levels.push_back(level);
  return levels;
}

/// Rows that lack a cell, and how many of them each column has to answer for.
struct MissingCells {
  std::vector<bool> row;
  std::vector<std::pair<std::string, Index>> columns{};

  [[nodiscard]] Index rows() const { return std::count(row.begin(), row.end(), true); }
  [[nodiscard]] std::string listed() const {
    ColumnNames words;
    for (const auto& [name, count] : columns) words.push_back(fmt::format("{}: {}", name, count));
    return fmt::format("{}", fmt::join(words, ", "));
  }
};

/// Columns that mix numbers and text are not searched unless they are categories: their stray cells are errors, not
/// missing values.
MissingCells missing_cells(const Table& table, const ColumnNames& names, const ColumnNames& categories = {}) {
  MissingCells missing{.row = std::vector<bool>(static_cast<std::size_t>(table.rows))};
  for (const std::string& name : names) {
    const Column& column = table.column(name);
    std::optional<CodeKind> kind = column.numeric() ? std::nullopt : kind_of(table, column);
    if (!kind && contains(categories, name)) kind = CodeKind::category;
    if (!kind) continue;
    Index count = 0;
    for (std::size_t at = 0; at < column.text.size(); ++at) {
      const std::string& cell = column.text[at];
      if (!is_missing_in(*kind, cell)) continue;
      missing.row[at] = true;
      ++count;
    }
    if (count > 0) missing.columns.emplace_back(name, count);
  }
  return missing;
}

template <class Cell>
void keep(std::vector<Cell>& cells, const std::vector<bool>& dropped) {
  if (cells.empty()) return;
  std::size_t to = 0;
  for (std::size_t from = 0; from < cells.size(); ++from) {
    if (dropped[from]) continue;
    if (to != from) cells[to] = std::move(cells[from]);
    ++to;
  }
  cells.resize(to);
}

KeptRows drop_rows(Table& table, const MissingCells& missing) {
  KeptRows kept{.of = table.rows, .all = missing.rows() == 0};
  if (kept.all) return kept;
  if (missing.rows() == table.rows) {
    throw BadData(fmt::format(
        "{}: every row has a missing cell ({}); use --missing indicator, or choose other columns with --x and --z",
        table.source, missing.listed()));
  }
  for (std::size_t row = 0; row < missing.row.size(); ++row)
    if (!missing.row[row]) kept.rows.push_back(static_cast<Index>(row));
  for (Column& column : table.columns) {
    keep(column.numbers, missing.row);
    keep(column.text, missing.row);
    const auto empty = [](const std::string& cell) { return cell.empty(); };
    column.empty_cells = std::count_if(column.text.begin(), column.text.end(), empty);
  }
  table.rows = static_cast<Index>(kept.rows.size());
  return kept;
}

double mean_of(const Table& table, const Column& column, const ColumnCode& code) {
  double sum = 0, count = 0;
  for (const std::string& cell : column.text) {
    if (is_missing_number(cell)) continue;
    sum += *cell_value(table, column, cell, code);
    ++count;
  }
  return sum / count;
}

/// One table on its way.
struct TableSide {
  Table& table;
  UsedColumns used;
  bool response_side;
  std::vector<ColumnCode> codes{};
  DateOrder dates = DateOrder::unknown;  ///< Where the cells of a column do not tell.
};

/// Open and named ones.
ColumnNames features_of(const TableSide& side) {
  ColumnNames names = side.used.features;
  names.insert(names.end(), side.used.named.begin(), side.used.named.end());
  return names;
}

void leave_out_columns(TableSide& side, ColumnNames& notes) {
  if (!side.used.open) return;
  ColumnNames left;
  ColumnNames reasons;
  for (const std::string& name : side.used.features) {
    const std::string reason = reason_to_leave_out(side.table, side.table.column(name), side.used.option);
    if (reason.empty()) {
      left.push_back(name);
    } else {
      reasons.push_back(fmt::format("{}: column \"{}\" {}", side.table.source, name, reason));
    }
  }
  // The only feature of a table is used even if it counts: there is nothing else to fit.
  if (left.empty() && !side.response_side && side.used.features.size() == 1 &&
      side.table.column(side.used.features.front()).numeric())
    return;
  side.used.features = left;
  notes.insert(notes.end(), reasons.begin(), reasons.end());
}

std::string key_option(const std::string& left, const std::string& right) {
  return left == right ? left : left + "=" + right;
}

/// A column of text of the other table that has at least half of the levels in common; null: there is none.
const Column* column_of_same_levels(const Table& table, const std::map<std::string, Index>& levels) {
  for (const Column& column : table.columns) {
    if (column.numeric() || column.only_key || kind_of(table, column) != CodeKind::category) continue;
    const auto others = levels_of(column);
    std::size_t common = 0;
    for (const auto& [level, count] : levels) common += others.count(level);
    if (2 * common >= std::max(levels.size(), others.size())) return &column;
  }
  return nullptr;
}

/// Text that both tables hold is a key by which rows can be linked rather than a feature.
void leave_out_keys(std::vector<TableSide>& sides, ColumnNames& notes) {
  if (sides.size() < 2) return;
  for (std::size_t k = 0; k < 2; ++k) {
    TableSide& side = sides[k];
    const Table& other = sides[1 - k].table;
    const auto is_key = [&](const std::string& name) {
      const Column& column = side.table.column(name);
      if (column.numeric() || kind_of(side.table, column) != CodeKind::category) return false;
      const Column* same = column_of_same_levels(other, levels_of(column));
      if (same == nullptr) return false;
      notes.push_back(fmt::format(
          "{}: column \"{}\" shares its values with \"{}\" of {}: left out; make it a key with --group {}, or name it "
          "with {} to use it",
          side.table.source, name, same->name, other.source,
          k == 0 ? key_option(name, same->name) : key_option(same->name, name), side.used.option));
      return true;
    };
    if (side.used.open) std::erase_if(side.used.features, is_key);
  }
}

/// Says what became of a column of text.
void note_category(const Table& table, const ColumnCode& code, ColumnNames& notes) {
  constexpr std::size_t shown = 5;
  ColumnNames others(code.levels.begin() + 1, code.levels.end());
  const bool cut = others.size() > shown;
  if (cut) others.resize(shown);
  notes.push_back(fmt::format("{}: column \"{}\" is a category of {} levels; reference {}, against which {}{} {}",
                              table.source, code.column, code.levels.size(), code.levels.front(),
                              fmt::join(others, ", "), cut ? ", ..." : "",
                              code.levels.size() == 2 ? "has a coefficient" : "have coefficients"));
}

/// The order of the column's dates, or the one that was given where they may be read in two ways.
DateOrder settled_dates(const TableSide& side, const Column& column) {
  const DateOrder order = date_order_of(column).value();
  if (order != DateOrder::unknown) return order;
  if (side.dates == DateOrder::day_first || side.dates == DateOrder::month_first) return side.dates;
  const auto first =
      std::find_if(column.text.begin(), column.text.end(), [](const auto& cell) { return !is_missing_number(cell); });
  throw BadData(
      fmt::format("{}: column \"{}\" holds dates such as {}, of which no cell tells day and month apart; say "
                  "--dates day-first or --dates month-first",
                  side.table.source, column.name, *first));
}

std::optional<ColumnCode> code_of(const TableSide& side, const std::string& name, bool feature) {
  const Column& column = side.table.column(name);
  if (column.numeric()) return std::nullopt;
  const std::optional<CodeKind> kind = kind_of(side.table, column);
  if (!kind || (*kind == CodeKind::category && !feature)) return std::nullopt;
  ColumnCode code{.column = name, .response_side = side.response_side, .kind = *kind};
  if (*kind == CodeKind::category) code.levels = ordered_levels(levels_of(column));
  if (*kind == CodeKind::date) code.dates = settled_dates(side, column);
  return code;
}

/// Text and truth values as numbers; `indicated` are the columns whose missing cells are filled in.
void code_columns(TableSide& side, const ColumnNames& indicated, ColumnNames& notes) {
  const auto add = [&](const std::string& name, bool feature) {
    std::optional<ColumnCode> code = code_of(side, name, feature);
    if (!code) return;
    if (code->kind == CodeKind::category) note_category(side.table, *code, notes);
    if (code->kind == CodeKind::date)
      notes.push_back(fmt::format("{}: column \"{}\" holds dates, {}: days since 1970-01-01", side.table.source, name,
                                  name_of(code->dates)));
    code->indicator = contains(indicated, name);
    if (code->indicator && code->kind != CodeKind::category)
      code->fill = mean_of(side.table, side.table.column(name), *code);
    side.codes.push_back(std::move(*code));
  };
  for (const std::string& name : side.used.given) add(name, false);
  for (const std::string& name : features_of(side)) add(name, !side.used.by_formula);
  apply_codes(side.table, side.codes);
}

/// The features by the names of the columns that their codes made.
ColumnNames coded(const ColumnNames& features, const std::vector<ColumnCode>& codes) {
  ColumnNames names;
  for (const std::string& name : features) {
    const auto code =
        std::find_if(codes.begin(), codes.end(), [&](const ColumnCode& one) { return one.column == name; });
    const ColumnNames made = code == codes.end() ? ColumnNames{name} : coded_names(*code);
    names.insert(names.end(), made.begin(), made.end());
  }
  return names;
}

ColumnNames searched_columns(const TableSide& side) {
  ColumnNames names = side.used.given;
  const ColumnNames features = features_of(side);
  names.insert(names.end(), features.begin(), features.end());
  return names;
}

[[noreturn]] void complain_of_missing(const std::vector<TableSide>& sides, const std::vector<MissingCells>& missing) {
  ColumnNames words;
  for (std::size_t k = 0; k < sides.size(); ++k) {
    if (missing[k].columns.empty()) continue;
    words.push_back(fmt::format("{} of {} rows of {} ({})", missing[k].rows(), sides[k].table.rows,
                                sides[k].table.source, missing[k].listed()));
  }
  throw BadData(fmt::format("cells are missing in {}; fill them in, or use --missing drop or --missing indicator",
                            fmt::join(words, " and ")));
}

/// Of a data frame, the last row may be the sum of the others; files were read without it.
void leave_out_total(const TableSide& side, MissingCells& missing, ColumnNames& notes) {
  const Column* column = total_column(side.table);
  if (column == nullptr) return;
  missing.row.back() = true;
  notes.push_back(fmt::format("{}: the last row, whose column \"{}\" holds \"{}\", is a total and left out",
                              side.table.source, column->name, column->text.back()));
}

void note_dropped(const std::vector<TableSide>& sides, const std::vector<MissingCells>& missing, bool both,
                  ColumnNames& notes) {
  for (std::size_t k = 0; k < sides.size(); ++k) {
    if (missing[k].columns.empty()) continue;
    std::string line = fmt::format("{} of {} rows of {} dropped ({})", missing[k].rows(), missing[k].row.size(),
                                   sides[k].table.source, missing[k].listed());
    if (sides.size() == 1) {
      line += ", responses and features alike";
    } else if (both) {
      line += fmt::format(", and with them the same rows of {}", sides[1 - k].table.source);
    } else {
      line += fmt::format("; their partners in {} stay and have none", sides[1 - k].table.source);
    }
    notes.push_back(line);
  }
}

/// In tables that are in order a row takes its partner with it; all others would be out of step.
void drop_partners(std::vector<MissingCells>& missing) {
  for (std::size_t row = 0; row < missing[0].row.size(); ++row) {
    const bool either = missing[0].row[row] || missing[1].row[row];
    missing[0].row[row] = missing[1].row[row] = either;
  }
}

std::vector<KeptRows> drop_missing(std::vector<TableSide>& sides, std::vector<MissingCells>& missing, bool in_order,
                                   ColumnNames& notes) {
  const bool any = std::any_of(missing.begin(), missing.end(), [](const auto& one) { return !one.columns.empty(); });
  const bool both = sides.size() == 2 && in_order && sides[0].table.rows == sides[1].table.rows;
  if (any) note_dropped(sides, missing, both, notes);
  if (both) drop_partners(missing);
  std::vector<KeptRows> kept;
  for (std::size_t k = 0; k < sides.size(); ++k) kept.push_back(drop_rows(sides[k].table, missing[k]));
  if (any && sides.size() == 2 && !both && sides[0].table.rows != sides[1].table.rows) {
    notes.push_back(
        fmt::format("{} responses and {} features are fitted; if row i of one table belongs to row i of the "
                    "other, say --hint rows, and both are dropped",
                    sides[0].table.rows, sides[1].table.rows));
  }
  return kept;
}

std::vector<TableSide> sides_of(Table& responses, Table* features, const ColumnChoice& columns) {
  std::vector<TableSide> sides;
  if (features == nullptr) {
    sides.push_back({responses, used_columns_of_one_table(responses, columns), false});
    return sides;
  }
  sides.push_back({responses, used_columns(responses, columns, true), true});
  sides.push_back({*features, used_columns(*features, columns, false), false});
  return sides;
}

/// The columns that a formula uses, in place of named ones.
std::vector<TableSide> sides_of_formula(Table& responses, Table* features, const ColumnChoice& columns,
                                        const FormulaColumns& used) {
  const auto side_of = [&](Table& table, const ColumnNames& given, const ColumnNames& read, bool response_side) {
    UsedColumns of{.given = given, .features = read, .named = {}, .option = "the formula", .by_formula = true};
    of.categories = used.categories;
    if (table.find(columns.weights) != nullptr) of.given.push_back(columns.weights);
    return TableSide{table, std::move(of), response_side};
  };
  if (features == nullptr) return {side_of(responses, used.response, used.z, false)};
  return {side_of(responses, used.response, used.x, true), side_of(*features, {}, used.z, false)};
}

/// What a dot in the formula stands for: every column that would be used without a formula.
ColumnNames all_others(Table& responses, Table* features, const ColumnChoice& columns, ColumnNames& notes) {
  std::vector<TableSide> sides = sides_of(responses, features, columns);
  for (TableSide& side : sides) leave_out_columns(side, notes);
  leave_out_keys(sides, notes);
  ColumnNames others;
  for (const TableSide& side : sides) others.insert(others.end(), side.used.features.begin(), side.used.features.end());
  return others;
}

/// What the columns choice says of a formula, read with the tables at hand.
struct ReadFormula {
  Formula formula;
  FormulaColumns used;
};

ReadFormula read_formula(Table& responses, Table* features, ColumnChoice& columns, ColumnNames& notes) {
  if (columns.x || columns.z || !columns.response.empty())
    throw InvalidInput("a formula names response and features; leave out --response, --x and --z");
  const std::string& text = columns.formula.text;
  Formula formula = parse_formula(text);
  FormulaColumns used = columns_used(formula, responses, features, columns.groups);
  if (asks_for_all_columns(text)) {
    ColumnChoice open = columns;
    open.response = used.response;
    columns.formula.others = all_others(responses, features, open, notes);
    formula = parse_formula(text, columns.formula.others);
    used = columns_used(formula, responses, features, columns.groups);
  }
  columns.response = used.response;
  return {std::move(formula), std::move(used)};
}

void note_categories(const FittedFormula& fitted, const FormulaNames& names, const Table& responses,
                     const Table& features, ColumnNames& notes) {
  for (const FittedFactor& factor : fitted.factors) {
    const ColumnNames& of = factor.response_side ? names.x : names.z;
    const bool reduced = std::any_of(of.begin(), of.end(), [&](const std::string& name) {
      return name.find(factor.name + "[T.") != std::string::npos;
    });
    if (factor.levels.empty() || !reduced) continue;
    notes.push_back(fmt::format("{}: {} is a category of {} levels; reference {}",
                                (factor.response_side ? responses : features).source, factor.name, factor.levels.size(),
                                factor.reference));
  }
}

/// Adds the columns of the formula to the tables, whose rows are complete by now.
void apply_formula(const ReadFormula& read, Table& responses, Table* features, ColumnChoice& columns,
                   Preparation& done) {
  const FormulaTable left{responses, done.responses};
  const FormulaTable right{features == nullptr ? responses : *features, done.features};
  if (columns.formula.factors.empty())
    columns.formula.factors = learn_factors(read.formula, read.used, left, features == nullptr ? nullptr : &right);
  const std::vector<FittedFactor>& factors = columns.formula.factors;
  add_columns(left, read.formula, factors, FormulaPart::x);
  add_columns(right, read.formula, factors, FormulaPart::z);
  add_columns(left, read.formula, factors, FormulaPart::response);
  if (read.formula.offset)
    add_columns(factors[*read.formula.offset].response_side ? left : right, read.formula, factors, FormulaPart::offset);
  FormulaNames names = names_of(read.formula, factors);
  if (!names.offset.empty() && !columns.rows.offset.empty() && columns.rows.offset != names.offset)
    throw InvalidInput("the formula has an offset(); leave out --offset");
  if (!names.offset.empty()) columns.rows.offset = names.offset;
  note_categories(columns.formula, names, responses, right.table, done.notes);
  if (names.z.empty() && features != nullptr)
    throw InvalidInput(
        fmt::format("formula: no term has a column of {}, so there is nothing to link", features->source));
  columns.response = std::move(names.response);
  columns.x = std::move(names.x);
  columns.z = std::move(names.z);
}

/// The formula of an earlier fit.
ReadFormula formula_of(const ColumnChoice& columns) {
  Formula formula = parse_formula(columns.formula.text, columns.formula.others);
  FormulaColumns used = columns_used(formula, columns.formula.factors);
  return {std::move(formula), std::move(used)};
}

void add_formula_columns(Table& rows, const Formula& formula, const std::vector<FittedFactor>& factors, RowsHold hold) {
  const KeptRows all;
  const FormulaTable to{rows, all};
  add_columns(to, formula, factors, FormulaPart::x);
  add_columns(to, formula, factors, FormulaPart::z);
  if (formula.offset) add_columns(to, formula, factors, FormulaPart::offset);
  if (hold == RowsHold::features_and_responses) add_columns(to, formula, factors, FormulaPart::response);
}

void require_complete(const Table& rows, const ColumnNames& names, const ColumnNames& categories) {
  const MissingCells missing = missing_cells(rows, names, categories);
  const auto gap = std::find(missing.row.begin(), missing.row.end(), true);
  if (gap == missing.row.end()) return;
  throw BadData(
      fmt::format("{}, row {}: a cell is missing ({} of {} rows: {}); values were expected in all columns of "
                  "the formula",
                  rows.source, gap - missing.row.begin() + 1, missing.rows(), rows.rows, missing.listed()));
}

/// Missing responses and weights cannot be filled in: with an indicator their rows are dropped.
std::vector<MissingCells> cells_to_drop(const std::vector<TableSide>& sides, const PrepareOptions& options) {
  std::vector<MissingCells> missing;
  for (const TableSide& side : sides) {
    const bool fill = options.missing == Missing::indicator;
    missing.push_back(missing_cells(side.table, fill ? side.used.given : searched_columns(side), side.used.categories));
  }
  return missing;
}

ColumnNames indicated_columns(const TableSide& side, ColumnNames& notes) {
  const MissingCells missing = missing_cells(side.table, features_of(side));
  ColumnNames names;
  for (const auto& [name, count] : missing.columns) names.push_back(name);
  if (!names.empty())
    notes.push_back(
        fmt::format("{}: missing cells filled with the mean of their column, which NAME[missing] then marks ({})",
                    side.table.source, missing.listed()));
  return names;
}

/// The choice by the columns of the files instead of those that codes make of them.
ColumnChoice as_written(ColumnChoice columns) {
  for (ColumnNames* names : {&*columns.x, &*columns.z}) {
    for (const ColumnCode& code : columns.codes) {
      const ColumnNames made = coded_names(code);
      const auto first = std::find(names->begin(), names->end(), made.front());
      if (first == names->end()) continue;
      *first = code.column;
      std::erase_if(*names, [&](const std::string& name) { return name != code.column && contains(made, name); });
    }
  }
  return columns;
}

/// What became of the columns, for other tables; features are then named as they are coded.
void keep_codes(TableSide& side, bool one_table, ColumnChoice& columns) {
  if (!side.used.by_formula) {
    (side.response_side ? columns.x : columns.z) = coded(side.used.features, side.codes);
    if (one_table) columns.x = coded(side.used.named, side.codes);
  }
  for (ColumnCode& code : side.codes) {
    code.response_side =
        side.response_side || contains(side.used.named, code.column) || contains(columns.response, code.column);
    if (code.kind != CodeKind::number || code.indicator) columns.codes.push_back(std::move(code));
  }
}

/// Numbers that were read as text, such as those beside missing cells.
void add_number_codes(TableSide& side, const ColumnNames& names) {
  for (const std::string& name : names) {
    const auto has_code = [&](const ColumnCode& code) { return code.column == name; };
    if (std::any_of(side.codes.begin(), side.codes.end(), has_code)) continue;
    std::optional<ColumnCode> code = code_of(side, name, false);
    if (code && code->kind == CodeKind::number) side.codes.push_back(std::move(*code));
  }
}

void require_columns(const TableSide& side) {
  for (const std::string& name : searched_columns(side)) (void)side.table.column(name);
}

/// The row among those kept; none: it was dropped.
std::optional<Index> kept_row(const KeptRows& kept, Index row, const char* which) {
  if (kept.all) return row;
  if (row >= kept.of)
    throw BadData(fmt::format("a pair names row {} of the {}, which have {} (counted from 0)", row, which, kept.of));
  const auto found = std::lower_bound(kept.rows.begin(), kept.rows.end(), row);
  if (found == kept.rows.end() || *found != row) return std::nullopt;
  return found - kept.rows.begin();
}

template <class Pair>
std::vector<Pair> pairs_in_kept_rows(const std::vector<Pair>& pairs, const Preparation& kept) {
  std::vector<Pair> made;
  for (Pair pair : pairs) {
    const auto left = kept_row(kept.responses, pair.response_row, "responses");
    const auto right = kept_row(kept.features, pair.feature_row, "features");
    if (!left || !right) continue;
    pair.response_row = *left;
    pair.feature_row = *right;
    made.push_back(pair);
  }
  return made;
}

}  // namespace

Preparation prepare(Table& responses, Table* features, ColumnChoice& columns, const PrepareOptions& options) {
  Preparation done;
  const bool by_formula = !columns.formula.text.empty();
  if (by_formula && options.missing == Missing::indicator)
    throw InvalidInput("--missing indicator does not go with a formula; use --missing drop or error");
  const ReadFormula read = by_formula ? read_formula(responses, features, columns, done.notes) : ReadFormula{};
  std::vector<TableSide> sides =
      by_formula ? sides_of_formula(responses, features, columns, read.used) : sides_of(responses, features, columns);
  for (TableSide& side : sides) {
    side.dates = options.dates;
    require_columns(side);
    leave_out_columns(side, done.notes);
  }
  leave_out_keys(sides, done.notes);
  std::vector<MissingCells> missing = cells_to_drop(sides, options);
  const bool any = std::any_of(missing.begin(), missing.end(), [](const auto& one) { return !one.columns.empty(); });
  if (any && options.missing == Missing::error) complain_of_missing(sides, missing);
  for (std::size_t k = 0; k < sides.size(); ++k) leave_out_total(sides[k], missing[k], done.notes);
  const std::vector<KeptRows> kept = drop_missing(sides, missing, options.in_order, done.notes);
  done.responses = kept.front();
  done.features = kept.back();
  for (TableSide& side : sides) {
    code_columns(side, options.missing == Missing::indicator ? indicated_columns(side, done.notes) : ColumnNames{},
                 done.notes);
    keep_codes(side, features == nullptr, columns);
  }
  if (by_formula) apply_formula(read, responses, features, columns, done);
  return done;
}

Preparation prepare_again(Table& responses, Table* features, const ColumnChoice& columns) {
  Preparation done;
  const bool by_formula = !columns.formula.text.empty();
  const ReadFormula read = by_formula ? formula_of(columns) : ReadFormula{};
  std::vector<TableSide> sides = by_formula ? sides_of_formula(responses, features, columns, read.used)
                                            : sides_of(responses, features, as_written(columns));
  std::vector<MissingCells> missing;
  for (TableSide& side : sides) {
    require_columns(side);
    for (const ColumnCode& code : columns.codes)
      if (features == nullptr || code.response_side == side.response_side) side.codes.push_back(code);
    ColumnNames searched = searched_columns(side);
    std::erase_if(searched, [&](const std::string& name) {
      return std::any_of(side.codes.begin(), side.codes.end(),
                         [&](const ColumnCode& code) { return code.column == name && code.indicator; });
    });
    missing.push_back(missing_cells(side.table, searched, side.used.categories));
  }
  for (std::size_t k = 0; k < sides.size(); ++k) leave_out_total(sides[k], missing[k], done.notes);
  const std::vector<KeptRows> kept = drop_missing(sides, missing, false, done.notes);
  done.responses = kept.front();
  done.features = kept.back();
  for (TableSide& side : sides) {
    add_number_codes(side, searched_columns(side));
    apply_codes(side.table, side.codes);
  }
  if (by_formula) {
    ColumnChoice same = columns;
    Preparation rows = done;
    apply_formula(read, responses, features, same, rows);
  }
  return done;
}

void code_rows(Table& rows, const ColumnChoice& columns, RowsHold hold) {
  const bool by_formula = !columns.formula.text.empty();
  const ReadFormula read = by_formula ? formula_of(columns) : ReadFormula{};
  const ColumnNames& responses = by_formula ? read.used.response : columns.response;
  std::vector<ColumnCode> codes = columns.codes;
  if (by_formula) {
    if (hold == RowsHold::features)
      std::erase_if(codes, [&](const ColumnCode& code) { return contains(responses, code.column); });
    TableSide side{rows, {}, false, std::move(codes)};
    ColumnNames names = hold == RowsHold::features ? ColumnNames{} : responses;
    for (const ColumnNames* of : {&read.used.x, &read.used.z}) names.insert(names.end(), of->begin(), of->end());
    const std::string none;
    for (const std::string* name : {read.formula.offset ? &none : &columns.rows.offset, &columns.rows.trials})
      if (!name->empty()) names.push_back(*name);
    require_complete(rows, names, read.used.categories);
    add_number_codes(side, names);
    apply_codes(rows, side.codes);
    add_formula_columns(rows, read.formula, columns.formula.factors, hold);
    return;
  }
  ColumnNames unread = columns.rows.names();
  std::erase_if(unread, [&](const std::string& name) {
    return name == columns.rows.offset || name == columns.rows.trials || contains(*columns.x, name) ||
           contains(*columns.z, name);
  });
  if (hold == RowsHold::features) unread.insert(unread.end(), responses.begin(), responses.end());
  std::erase_if(codes, [&](const ColumnCode& code) { return contains(unread, code.column); });
  apply_codes(rows, codes);
  for (const ColumnCode& code : codes) {
    const std::vector<double>& numbers = rows.column(coded_names(code).front()).numbers;
    const auto gap = std::find_if(numbers.begin(), numbers.end(), [](double number) { return std::isnan(number); });
    if (gap == numbers.end()) continue;
    throw BadData(
        fmt::format("{}, row {}: column \"{}\" is missing; a value was expected (a fit with --missing indicator "
                    "predicts without it)",
                    rows.source, gap - numbers.begin() + 1, code.column));
  }
}

std::vector<KnownPair> in_kept_rows(const std::vector<KnownPair>& pairs, const Preparation& kept) {
  return pairs_in_kept_rows(pairs, kept);
}

std::vector<PairWeight> in_kept_rows(const std::vector<PairWeight>& pairs, const Preparation& kept) {
  return pairs_in_kept_rows(pairs, kept);
}

}  // namespace unshuffle
