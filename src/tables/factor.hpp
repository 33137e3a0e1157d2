// Single factors of formulas: numbers, categories, splines, polynomials.
#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "tables/expression.hpp"
#include "unshuffle/tables/formula.hpp"

namespace unshuffle {

/// Functions that stand at the beginning of a factor and learn something from the table of the fit.
[[nodiscard]] bool makes_category(const Expression& factor);

/// Levels, knots and so on; throws InvalidInput for wrong arguments, BadData for a table it cannot be learned from.
[[nodiscard]] FittedFactor learn_factor(const Expression& factor, const Table& table);

/// Whether the factor can be applied with what is said to have been learned.
[[nodiscard]] bool is_complete(const Expression& factor, const FittedFactor& fitted);

/// What the names of its columns add to that of the factor; `reduced`: a category without its reference.
[[nodiscard]] std::vector<std::string> endings_of(const Expression& factor, const FittedFactor& fitted, bool reduced);

/// One array for each of these endings.
[[nodiscard]] std::vector<Eigen::ArrayXd> columns_of(const Expression& factor, const FittedFactor& fitted, bool reduced,
                                                     const Table& table);

/// The place of each row's level; -1: the fit has not seen it.
[[nodiscard]] std::vector<Index> levels_in(const Expression& factor, const FittedFactor& fitted, const Table& table);

}  // namespace unshuffle
