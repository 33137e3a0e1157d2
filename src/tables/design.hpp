// The columns that a formula makes of tables.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/tables/formula.hpp"
#include "unshuffle/tables/prepare.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle {

/// Columns of the tables that a formula uses, each once. With one table all but the response are features.
struct FormulaColumns {
  std::vector<std::string> response, x, z;
  std::vector<std::string> categories;  ///< Of these, those that C() makes categories.
};

/// Finds every column in one of the tables; throws BadData for one that neither has, or both have. A key of `groups`
/// under one name in both is taken from the features.
[[nodiscard]] FormulaColumns columns_used(const Formula& formula, const Table& responses, const Table* features,
                                          const std::vector<GroupKey>& groups);

/// The same for tables other than those of the fit, which may have more columns in common.
[[nodiscard]] FormulaColumns columns_used(const Formula& formula, const std::vector<FittedFactor>& factors);

/// Which rows of its file a table holds; errors name rows of the file.
struct FormulaTable {
  Table& table;
  const KeptRows& rows;
};

/// What the factors learn from tables whose columns are numbers or categories; null `features`: one table.
[[nodiscard]] std::vector<FittedFactor> learn_factors(const Formula& formula, const FormulaColumns& used,
                                                      const FormulaTable& responses, const FormulaTable* features);

/// Names of the columns of all terms.
struct FormulaNames {
  std::vector<std::string> response, x, z;
  std::string offset{};
};
[[nodiscard]] FormulaNames names_of(const Formula& formula, const std::vector<FittedFactor>& factors);

enum class FormulaPart { response, x, z, offset };

/// Adds the columns of one part to the table, which may replace columns of the same name.
void add_columns(const FormulaTable& to, const Formula& formula, const std::vector<FittedFactor>& factors,
                 FormulaPart part);

}  // namespace unshuffle
