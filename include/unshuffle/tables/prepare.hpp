// Tables as they are collected: categories, truth values and missing cells.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/problem.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What to do about rows with missing cells in columns that are used.
enum class Missing {
  drop,       ///< Leave the row out.
  error,      ///< Throw BadData that lists every column.
  indicator,  ///< Fill in the mean, and add a column that is 1 where a cell was missing.
};

/// Rows of a file that are used, ascending.
struct KeptRows {
  std::vector<Index> rows{};  ///< Meaningless if all are.
  Index of = 0;               ///< Rows of the file.
  bool all = true;
};

struct PrepareOptions {
  Missing missing = Missing::drop;
  DateOrder dates = DateOrder::unknown;  ///< Where a column's own cells do not tell.
  bool in_order = false;  ///< Row i of one table belongs to row i of the other: a dropped row is dropped from both.
};

struct Preparation {
  KeptRows responses, features;
  std::vector<std::string> notes{};  ///< One sentence each.
};

/// Makes tables fit for tables_to_problem. Text becomes columns of 0 and 1, the most frequent level being the
/// reference; TRUE/FALSE and yes/no become 1 and 0, dates that are asked for days. Columns that are open in `columns`
/// and hold dates, look like row numbers or have more than 50 levels are left out. With a formula the first level of a
/// category is the reference, unless the formula names another. `columns` then names what is in the tables, with the
/// codes. A null `features`: one table.
[[nodiscard]] Preparation prepare(Table& responses, Table* features, ColumnChoice& columns,
                                  const PrepareOptions& options = {});

/// The same for other tables of a fit, with its codes; rows with missing cells are left out.
[[nodiscard]] Preparation prepare_again(Table& responses, Table* features, const ColumnChoice& columns);

/// What complete rows have columns for.
enum class RowsHold { features, features_and_responses };

/// Codes complete rows as a fit did, for predictions. Throws BadData naming row and column of a missing cell that the
/// fit has no indicator for.
void code_rows(Table& rows, const ColumnChoice& columns, RowsHold hold = RowsHold::features);

/// Pairs of rows of the files as pairs of rows that are kept; pairs of dropped rows are left out. Throws BadData for a
/// row that the file does not have.
[[nodiscard]] std::vector<KnownPair> in_kept_rows(const std::vector<KnownPair>& pairs, const Preparation& kept);
[[nodiscard]] std::vector<PairWeight> in_kept_rows(const std::vector<PairWeight>& pairs, const Preparation& kept);

}  // namespace unshuffle
