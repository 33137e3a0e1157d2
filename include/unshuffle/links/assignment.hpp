// One-to-one matching of least total cost: for any dense cost, for candidate pairs, and for positions on a line.
#pragma once

#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

struct Assignment {
  std::vector<Index> column_of_row;  ///< -1: the row has no partner.
  double cost = 0;
  Vector row_dual;     ///< u and v with u_i + v_j ≤ C_ij, equality on every pair.
  Vector column_dual;  ///< Zero for columns without a partner when there are more columns than rows.
};

/// Optimal assignment of a dense rows×columns cost; +infinity forbids a pair. As many pairs as possible are made; when
/// not every row can have one, earlier rows go first. Shortest augmenting paths (Jonker & Volgenant 1987), O(n³) at
/// worst; ties go to the lower column.
[[nodiscard]] Assignment assign(const MatrixRef& cost);

/// A pair that may be made.
struct PossiblePair {
  Index row, column;
  double cost;
};

/// assign() among candidates only, in ascending order of rows; memory linear in their number. Returns the column of
/// every row, -1 for none.
[[nodiscard]] std::vector<Index> assign_among(const std::vector<PossiblePair>& candidates, Index rows, Index columns);

/// Pairs positions on a line so that Σ (t_i - s_j)² is least, every row of the shorter side getting a partner.
/// Optimal pairs do not cross, so equal sizes take two sorts. For unequal sizes a dynamic program over sorted positions
/// is exact while shorter·(difference + 1) ≤ `budget` (one bit of memory each); beyond that, both sides are cut into
/// equal quantile ranges that are matched separately, which is approximate. Ties are broken by index.
[[nodiscard]] std::vector<Index> assign_on_line(const VectorRef& t, const VectorRef& s, double budget = 1e9);

}  // namespace unshuffle
