#include "unshuffle/tables/tables_to_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_set>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;

/// To look names up in; tables may have as many as rows.
using NameSet = std::unordered_set<std::string>;

NameSet set_of(const Names& names) { return {names.begin(), names.end()}; }

/// Every column with numbers in it that has no other role. One that mixes numbers and text is taken too, so that its
/// stray cell is reported instead of the column vanishing from the fit.
Names columns_left(const Table& table, const Names& taken, std::string_view option, Names& notes) {
  Names left;
  const NameSet has_a_role = set_of(taken);
  for (const Column& column : table.columns) {
    if (has_a_role.contains(column.name)) continue;
    if (column.numeric() || column.holds_numbers) {
      left.push_back(column.name);
    } else {
      notes.push_back(fmt::format("{}: column \"{}\" holds no numbers and is not used (choose columns with {})",
                                  table.source, column.name, option));
    }
  }
  return left;
}

void require_distinct(const Names& names, std::string_view option) {
  NameSet seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) throw InvalidInput(fmt::format("{} names column \"{}\" twice", option, name));
  }
}

/// Coefficients are named after their columns, so names must be unique.
void require_one_meaning(const ColumnChoice& columns, const Table& responses, const Table& features) {
  require_distinct(columns.response, "--response");
  require_distinct(*columns.x, "--x");
  require_distinct(*columns.z, "--z");
  const NameSet response = set_of(columns.response), x = set_of(*columns.x), z = set_of(*columns.z);
  for (const std::string& name : *columns.x) {
    if (response.contains(name)) {
      throw InvalidInput(fmt::format("column \"{}\" cannot be both response and feature", name));
    }
    if (z.contains(name)) {
      throw BadData(
          fmt::format("column \"{}\" is in both {} and {}; say which columns to use with --x and --z, or "
                      "make it a key with --group",
                      name, responses.source, features.source));
    }
  }
  for (const std::string& name : *columns.z) {
    if (response.contains(name)) {
      throw BadData(fmt::format("{}: column \"{}\" is the response; say which columns are features with --z",
                                features.source, name));
    }
  }
  if (x.contains("intercept") || z.contains("intercept"))
    throw BadData("a feature column is named \"intercept\", which is the name of the intercept; rename it");
}

/// A column of numbers that all satisfy a condition, given in words.
Vector numbers_that(const Table& table, const std::string& column, bool (*holds)(double), std::string_view expected) {
  const std::vector<double>& cells = table.numbers(column);
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (holds(cells[row])) continue;
    throw BadData(fmt::format("{}, row {}: column \"{}\" holds {}; {} was expected", table.source, row + 1, column,
                              cells[row], expected));
  }
  return Eigen::Map<const Vector>(cells.data(), table.rows);
}

/// Of rows in order: from the table that has it.
struct InOrder {
  const Table& responses;
  const Table& features;

  [[nodiscard]] const Table& table_of(const std::string& column) const {
    if (responses.find(column) != nullptr || features.find(column) == nullptr) {
      (void)responses.column(column);  // throws, listing the columns there are
      return responses;
    }
    if (responses.rows == features.rows) return features;
    throw BadData(
        fmt::format("column \"{}\" describes links in the order given, so it needs tables of equal length; {} has {} "
                    "rows and {} {}",
                    column, responses.source, responses.rows, features.source, features.rows));
  }
  [[nodiscard]] Vector numbers(const std::string& column, bool (*holds)(double), std::string_view expected) const {
    return numbers_that(table_of(column), column, holds, expected);
  }
};

bool is_share(double value) { return value > 0 && value < 1; }

void add_offsets(RowFacts& facts, const Table& responses, const Table& features, const std::string& column) {
  if (column.empty()) return;
  const auto finite = [](double value) { return std::isfinite(value); };
  const bool one_table = &responses == &features;
  const bool left = !one_table && responses.find(column) != nullptr, right = features.find(column) != nullptr;
  if (!left && !right) (void)responses.column(column);
  if (left) facts.response_offset = numbers_that(responses, column, finite, "a finite number");
  if (right) facts.feature_offset = numbers_that(features, column, finite, "a finite number");
}

/// Probabilities of 0 and 1 are estimates, too: no odds are beyond a million to one.
Vector log_odds(const Vector& probability) {
  constexpr double least = 1e-6;
  return probability.unaryExpr([least](double p) {
    const double kept = std::clamp(p, least, 1 - least);
    return std::log(kept / (1 - kept));
  });
}

void add_mismatch(RowFacts& facts, const InOrder& rows, const RowColumns& columns) {
  Names names = columns.mismatch;
  if (!columns.link_probability.empty()) names.insert(names.begin(), columns.link_probability);
  facts.mismatch.resize(names.empty() ? 0 : rows.responses.rows, Index(names.size()));
  for (std::size_t k = 0; k < names.size(); ++k) {
    const bool odds = k == 0 && !columns.link_probability.empty();
    facts.mismatch.col(Index(k)) =
        odds ? log_odds(rows.numbers(
                   names[k], [](double p) { return p >= 0 && p <= 1; }, "a probability"))
             : rows.numbers(
                   names[k], [](double value) { return std::isfinite(value); }, "a finite number");
    facts.mismatch_names.push_back(odds ? fmt::format("logit({})", names[k]) : names[k]);
  }
}

void add_row_facts(Problem& problem, const Table& responses, const Table& features, const RowColumns& columns) {
  RowFacts& facts = problem.facts;
  const InOrder rows{responses, features};
  const auto whole = [](double m) { return m >= 1 && m == std::floor(m) && std::isfinite(m); };
  const auto truth = [](double value) { return value == 0 || value == 1; };
  add_offsets(facts, responses, features, columns.offset);
  if (!columns.trials.empty())
    facts.trials = numbers_that(responses, columns.trials, whole, "a whole number of at least 1");
  if (!columns.event.empty()) facts.event = numbers_that(responses, columns.event, truth, "0 or 1");
  add_mismatch(facts, rows, columns);
  if (!columns.wrong_rate.empty())
    facts.wrong_rate = rows.numbers(columns.wrong_rate, is_share, "a rate above 0 and below 1");
  if (columns.common_wrong_rate > 0) facts.wrong_rate = Vector::Constant(responses.rows, columns.common_wrong_rate);
  facts.audit = columns.audit;
  if (columns.safe.empty()) return;
  const Vector safe = rows.numbers(columns.safe, truth, "0 or 1");
  for (Index row = 0; row < safe.size() && row < features.rows; ++row)
    if (safe(row) != 0) problem.known.push_back({row, row});
}

Vector weights_of(const Table& table, const std::string& column) {
  const std::vector<double>& weights = table.numbers(column);
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] >= 0) continue;
    throw BadData(fmt::format("{}, row {}: column \"{}\" holds the weight {}; at least 0 was expected", table.source,
                              row + 1, column, weights[row]));
  }
  const Vector values = Eigen::Map<const Vector>(weights.data(), table.rows);
  if (!(values.sum() > 0)) {
    throw BadData(
        fmt::format("{}: every weight in column \"{}\" is 0; at least one above 0 was expected", table.source, column));
  }
  return values;
}

/// Cells as keys: numbers compare as numbers (1 = 1.0) when both tables hold numbers only, else cells as written.
Names keys_of(const Column& column, bool as_numbers, Index rows) {
  if (!as_numbers && !column.text.empty()) return column.text;
  Names keys(static_cast<std::size_t>(rows));
  for (std::size_t row = 0; row < keys.size(); ++row) append_number(keys[row], column.numbers[row]);
  return keys;
}

/// Rows without a key would match all other rows without one.
void require_filled(const Table& table, const Column& key) {
  if (key.empty_cells == 0) return;
  throw BadData(
      fmt::format("{}:{}: column \"{}\" is empty ({} of {} rows); a key of --group needs a value in every row: fill it "
                  "in, leave the rows out, or use --soft-group, where an empty cell says nothing",
                  table.source, key.first_empty_line, key.name, key.empty_cells, table.rows));
}

void add_groups(Problem& problem, const Table& responses, const Table& features, const std::vector<GroupKey>& groups) {
  if (groups.empty()) return;
  std::vector<Names> left(static_cast<std::size_t>(responses.rows));
  std::vector<Names> right(static_cast<std::size_t>(features.rows));
  for (const GroupKey& group : groups) {
    const Column& a = responses.column(group.response_column);
    const Column& b = features.column(group.feature_column);
    require_filled(responses, a);
    require_filled(features, b);
    const bool as_numbers = a.numeric() && b.numeric();
    Names keys = keys_of(a, as_numbers, responses.rows);
    for (std::size_t row = 0; row < left.size(); ++row) left[row].push_back(std::move(keys[row]));
    keys = keys_of(b, as_numbers, features.rows);
    for (std::size_t row = 0; row < right.size(); ++row) right[row].push_back(std::move(keys[row]));
  }
  std::map<Names, Index> labels;
  for (const auto* side : {&left, &right}) {
    for (const Names& key : *side) labels.try_emplace(key, 0);
  }
  Index next = 0;
  for (auto& [unused, label] : labels) label = next++;
  for (const Names& key : left) problem.response_groups.push_back(labels.at(key));
  for (const Names& key : right) problem.feature_groups.push_back(labels.at(key));
}

/// Labels by key, equal for equal keys; negative for empty cells.
std::vector<Index> labels_of(const Names& keys, std::map<std::string, Index>& labels) {
  std::vector<Index> made;
  for (const std::string& key : keys) {
    const auto next = static_cast<Index>(labels.size());
    made.push_back(key.empty() ? -1 : labels.try_emplace(key, next).first->second);
  }
  return made;
}

void add_soft_keys(Problem& problem, const Table& responses, const Table& features,
                   const std::vector<SoftGroup>& groups) {
  for (const auto& [key, agreement] : groups) {
    const Column& a = responses.column(key.response_column);
    const Column& b = features.column(key.feature_column);
    const bool as_numbers = a.numeric() && b.numeric();
    std::map<std::string, Index> labels;
    std::vector<Index> left = labels_of(keys_of(a, as_numbers, responses.rows), labels);
    problem.soft_keys.push_back({std::move(left), labels_of(keys_of(b, as_numbers, features.rows), labels), agreement});
  }
}

/// Rows whose group is missing on the other side are excluded; the user must be told.
void note_rows_without_group(const Problem& problem, const Table& responses, const Table& features, Names& notes) {
  if (problem.response_groups.empty()) return;
  Index in_block_left = 0;
  Index in_block_right = 0;
  for (const Block& block : blocks_of(problem)) {
    in_block_left += static_cast<Index>(block.response_rows.size());
    in_block_right += static_cast<Index>(block.feature_rows.size());
  }
  const auto note = [&](Index without, const Table& table, const Table& other) {
    if (without == 0) return;
    notes.push_back(fmt::format("{}: {} of {} rows are of a group that {} does not have; they cannot match",
                                table.source, without, table.rows, other.source));
  };
  note(responses.rows - in_block_left, responses, features);
  note(features.rows - in_block_right, features, responses);
}

/// Methods use one noise variance for all responses, so one in large units would dominate.
void note_unlike_responses(const Problem& problem, const Table& responses, Names& notes) {
  constexpr double unlike = 10;
  const Vector spreads = column_spreads(problem.y);
  Index largest = 0;
  Index smallest = 0;
  if (!(spreads.maxCoeff(&largest) > unlike * spreads.minCoeff(&smallest))) return;
  notes.push_back(
      fmt::format("{}: the response \"{}\" has the standard deviation {:.3g} and \"{}\" {:.3g}; responses "
                  "share one noise variance, so bring them to similar scales (divide each by a constant) or the larger "
                  "dominates",
                  responses.source, problem.y_names[static_cast<std::size_t>(largest)], spreads[largest],
                  problem.y_names[static_cast<std::size_t>(smallest)], spreads[smallest]));
}

Names taken_columns(const ColumnChoice& columns, bool response_side) {
  Names taken;
  if (response_side) taken = columns.response;
  if (!columns.weights.empty()) taken.push_back(columns.weights);
  const Names of_rows = columns.rows.names();
  taken.insert(taken.end(), of_rows.begin(), of_rows.end());
  for (const GroupKey& group : columns.groups) {
    taken.push_back(response_side ? group.response_column : group.feature_column);
  }
  for (const SoftGroup& group : columns.soft_groups) {
    taken.push_back(response_side ? group.key.response_column : group.key.feature_column);
  }
  return taken;
}

TablesAsProblem assemble(const Table& responses, const Table& features, ColumnChoice columns, Names notes) {
  require_one_meaning(columns, responses, features);
  if (columns.z->empty()) {
    throw BadData(fmt::format("{}: no numeric column is left to serve as a feature", features.source));
  }
  Problem problem;
  problem.y = responses.matrix(columns.response);
  problem.x = responses.matrix(*columns.x);
  problem.z = features.matrix(*columns.z);
  problem.y_names = columns.response;
  problem.x_names = *columns.x;
  problem.z_names = *columns.z;
  if (!columns.weights.empty()) {
    const bool left = responses.find(columns.weights) != nullptr;
    const bool right = features.find(columns.weights) != nullptr;
    if (!left && !right) (void)responses.column(columns.weights);  // Throws, listing the columns there are.
    if (left) problem.response_weights = weights_of(responses, columns.weights);
    if (right) problem.feature_weights = weights_of(features, columns.weights);
  }
  add_row_facts(problem, responses, features, columns.rows);
  add_groups(problem, responses, features, columns.groups);
  add_soft_keys(problem, responses, features, columns.soft_groups);
  validate(problem);
  note_rows_without_group(problem, responses, features, notes);
  note_unlike_responses(problem, responses, notes);
  return {std::move(problem), std::move(columns), std::move(notes)};
}

}  // namespace

std::vector<std::string> RowColumns::names() const {
  Names all = mismatch;
  for (const std::string& name : {offset, trials, event, safe, link_probability, wrong_rate})
    if (!name.empty()) all.push_back(name);
  return all;
}

ColumnChoice by_name(ColumnChoice columns, const Table& responses, const Table* features) {
  const auto rename = [](std::string& name, const Table& table) {
    const Column* column = name.empty() ? nullptr : table.find(name);
    if (column != nullptr) name = column->name;
  };
  const Table& right = features == nullptr ? responses : *features;
  for (std::string& name : columns.response) rename(name, responses);
  if (columns.x)
    for (std::string& name : *columns.x) rename(name, responses);
  if (columns.z)
    for (std::string& name : *columns.z) rename(name, right);
  for (GroupKey& key : columns.groups) {
    rename(key.response_column, responses);
    rename(key.feature_column, right);
  }
  return columns;
}

TablesAsProblem tables_to_problem(const Table& responses, const Table& features, ColumnChoice columns) {
  if (columns.response.empty()) throw InvalidInput("no response column was named");
  for (const std::string& name : columns.response) (void)responses.column(name);
  Names notes;
  if (!columns.x) columns.x = columns_left(responses, taken_columns(columns, true), "--x", notes);
  if (!columns.z) columns.z = columns_left(features, taken_columns(columns, false), "--z", notes);
  return assemble(responses, features, std::move(columns), std::move(notes));
}

TablesAsProblem table_to_problem(const Table& table, ColumnChoice columns) {
  if (columns.response.empty()) throw InvalidInput("no response column was named");
  for (const std::string& name : columns.response) (void)table.column(name);
  Names notes;
  if (!columns.x) columns.x = Names{};
  if (!columns.z) {
    Names taken = taken_columns(columns, true);
    const Names right = taken_columns(columns, false);
    taken.insert(taken.end(), right.begin(), right.end());
    taken.insert(taken.end(), columns.x->begin(), columns.x->end());
    columns.z = columns_left(table, taken, "--z", notes);
  }
  return assemble(table, table, std::move(columns), std::move(notes));
}

namespace {

/// A column of row numbers, as written; whole numbers in full, not as 1e+05.
Names row_cells(const Table& pairs, const std::string& name) {
  const Column& column = pairs.column(name);
  Names cells = keys_of(column, false, pairs.rows);
  constexpr double exact = 9007199254740992;  // up to here every whole number is a double
  for (std::size_t row = 0; column.text.empty() && row < cells.size(); ++row) {
    const double number = column.numbers[row];
    if (number >= 0 && number <= exact && number == std::floor(number)) cells[row] = fmt::format("{:.0f}", number);
  }
  return cells;
}

Index to_row(const Table& pairs, const std::string& cell, std::size_t row, const char* name) {
  Index value = 0;
  const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failure == std::errc{} && end == cell.data() + cell.size() && value >= 0) return value;
  throw BadData(fmt::format("{}, row {}: column \"{}\" holds \"{}\"; a row number from 0 was expected", pairs.source,
                            row + 1, name, cell));
}

}  // namespace

std::vector<KnownPair> known_pairs_of(const Table& pairs) {
  const Names left = row_cells(pairs, "response_row");
  const Names right = row_cells(pairs, "feature_row");
  struct Given {
    Index response_row, feature_row;
    std::size_t row;
    auto operator<=>(const Given&) const = default;
  };
  std::vector<KnownPair> known;
  std::vector<Given> given;
  for (std::size_t row = 0; row < left.size(); ++row) {
    if (left[row].empty() || right[row].empty()) continue;
    known.push_back({to_row(pairs, left[row], row, "response_row"), to_row(pairs, right[row], row, "feature_row")});
    given.push_back({known.back().response_row, known.back().feature_row, row});
  }
  std::sort(given.begin(), given.end());
  const auto twice = std::adjacent_find(given.begin(), given.end(), [](const Given& a, const Given& b) {
    return a.response_row == b.response_row && a.feature_row == b.feature_row;
  });
  if (twice == given.end()) return known;
  throw BadData(fmt::format("{}, row {}: the pair {},{} is given twice, first in row {}", pairs.source,
                            std::next(twice)->row + 1, twice->response_row, twice->feature_row, twice->row + 1));
}

std::vector<PairWeight> pair_weights_of(const Table& weights) {
  const Names left = row_cells(weights, "response_row");
  const Names right = row_cells(weights, "feature_row");
  const std::vector<double>& values = weights.numbers("weight");
  std::vector<PairWeight> prior;
  for (std::size_t row = 0; row < left.size(); ++row) {
    if (!(values[row] > 0)) {
      throw BadData(fmt::format("{}, row {}: column \"weight\" holds {}; prior odds > 0 were expected", weights.source,
                                row + 1, values[row]));
    }
    prior.push_back({to_row(weights, left[row], row, "response_row"), to_row(weights, right[row], row, "feature_row"),
                     values[row]});
  }
  return prior;
}

}  // namespace unshuffle
