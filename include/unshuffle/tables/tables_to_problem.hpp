// The role of each column of each table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/column_code.hpp"
#include "unshuffle/tables/formula.hpp"
#include "unshuffle/tables/problem.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A key both tables share, under possibly different names.
struct GroupKey {
  std::string response_column;
  std::string feature_column;
};

/// A key on which true partners mostly agree, and how often they do.
struct SoftGroup {
  GroupKey key;
  double agreement;
};

/// Columns that say something of their rows and are no features; empty: none. Those of the response table come first
/// where both tables have a column of that name.
struct RowColumns {
  std::string offset{};                 ///< In either table or both, which then add up.
  std::string trials{};                 ///< Of the response table.
  std::string event{};                  ///< Likewise.
  std::string safe{};                   ///< Not 0: the link in the order given is right.
  std::vector<std::string> mismatch{};  ///< The odds of a right link depend on them.
  std::string link_probability{};       ///< So they do on this one, a probability, by its log odds.
  std::string wrong_rate{};             ///< The probability that a link is wrong,
  double common_wrong_rate = 0;         ///< or that of all of them; 0: not given.
  double audit = 0;                     ///< As in RowFacts.

  [[nodiscard]] std::vector<std::string> names() const;
  bool operator==(const RowColumns&) const = default;
};

/// How files of events became tables, as the command line has it; see unshuffle/cytometry.hpp.
struct EventReading {
  std::vector<std::string> scales{};  ///< CHANNEL=SCALE, or SCALE for all others.
  bool compensate = false;
  std::string gates{};          ///< Name of the file of gates,
  std::string gates_content{};  ///< and what it holds.
  Index equal_mass_gates = 0;

  bool operator==(const EventReading&) const = default;
};

/// Columns are used in the order given here, or in file order when not given.
struct ColumnChoice {
  std::vector<std::string> response;            ///< At least one.
  std::optional<std::vector<std::string>> x{};  ///< Open: every other column of the response table that holds numbers.
  std::optional<std::vector<std::string>> z{};  ///< Open: every other column of the feature table that holds numbers.
  std::string weights{};                        ///< Column of row weights, in either table or both; empty: none.
  std::vector<GroupKey> groups{};               ///< Only rows equal in all of them may match; no cell may be empty.
  std::vector<SoftGroup>
      soft_groups{};  ///< Rows that agree on them are likelier partners; empty cells are no evidence.
  RowColumns rows{};
  std::vector<ColumnCode> codes{};  ///< How columns as written became those named here; see prepare.hpp.
  EventReading events{};
  std::vector<std::string> files{};  ///< That the tables came from, without folders; for reports.
  FittedFormula formula{};           ///< Its text alone says which columns are response, x and z.
};

/// The choice with labels of columns replaced by their names.
[[nodiscard]] ColumnChoice by_name(ColumnChoice columns, const Table& responses, const Table* features);

struct TablesAsProblem {
  Problem problem;
  ColumnChoice columns;            ///< The choice with everything filled in.
  std::vector<std::string> notes;  ///< One sentence each: what was excluded, and why.
};

/// D1 from one table and D2 from another.
[[nodiscard]] TablesAsProblem tables_to_problem(const Table& responses, const Table& features, ColumnChoice columns);

/// One table whose response column may be shuffled: the response is D1, every other numeric column D2 (x must be named
/// explicitly).
[[nodiscard]] TablesAsProblem table_to_problem(const Table& table, ColumnChoice columns);

/// Columns response_row and feature_row, 0-based, as a pairs file has them; rows with either cell empty are skipped,
/// they list what stayed unmatched.
[[nodiscard]] std::vector<KnownPair> known_pairs_of(const Table& pairs);

/// Columns response_row and feature_row, 0-based, and weight: the prior odds of that pair relative to pairs not listed.
[[nodiscard]] std::vector<PairWeight> pair_weights_of(const Table& weights);

}  // namespace unshuffle
