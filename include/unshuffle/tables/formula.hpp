// Formulas as in R and formulaic: "log(wage) ~ age + C(region) + age:sex + bs(x, 5) - 1".
//
// Columns are named as formulaic names them: `C(region)[T.south]`, `age:sex[T.male]`, `bs(x, 5)[1]`. Categories lose
// their first level where the columns would otherwise add up to columns of other terms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What is multiplied in a term: a column, or a function of columns.
struct FormulaFactor {
  std::string name;        ///< As it appears in names of columns.
  std::string expression;  ///< The same with backquotes where they are needed.
};

/// A product of factors, by their places in Formula::factors.
using FormulaTerm = std::vector<std::size_t>;

struct Formula {
  std::vector<FormulaFactor> factors{};
  std::vector<FormulaTerm> response{};
  std::vector<FormulaTerm> terms{};     ///< Without the intercept, those of fewer factors first.
  std::optional<std::size_t> offset{};  ///< The factor of offset(), a part of the predictor without a coefficient.
  bool intercept = true;
};

/// `others` is what a dot stands for. Throws InvalidInput that points to the place.
[[nodiscard]] Formula parse_formula(const std::string& text, const std::vector<std::string>& others = {});

/// Whether the formula has a dot, which stands for all columns without another role.
[[nodiscard]] bool asks_for_all_columns(const std::string& text);

/// What a factor learned from the tables of the fit.
struct FittedFactor {
  std::string name;
  bool response_side = false;         ///< Its columns are in the response table.
  std::vector<std::string> levels{};  ///< Of a category, in the order of their columns.
  std::string reference{};            ///< The level that is left out.
  std::vector<double> numbers{};      ///< Knots of a spline, mean and spread of scale() and so on.
};

/// A formula and what it needs to be applied to other tables.
struct FittedFormula {
  std::string text{};                 ///< Empty: there is none.
  std::vector<std::string> others{};  ///< What a dot stands for.
  std::vector<FittedFactor> factors{};
};

/// Throws BadData naming `source` if the factors are not those of the formula, or lack what it needs of them.
void require_factors(const FittedFormula& formula, const std::string& source);

}  // namespace unshuffle
