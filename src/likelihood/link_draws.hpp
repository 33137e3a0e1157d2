// One-to-one links of a block drawn from their posterior.
//
// Given the coefficients, links π have the posterior ∝ exp(Σ_i w(i, π(i))), w(i, j) being the log weight of a pair: its
// log density plus its log prior odds. Small blocks are drawn exactly. In larger ones a Metropolis chain exchanges
// partners. Half of its proposals are rows close in the order of their values, at distances of all scales, as such
// exchanges are the ones that are accepted; the others are any two rows. docs/mathematics.md §20.
#pragma once

#include <functional>
#include <vector>

#include "core/random.hpp"

namespace unshuffle {

/// Of row i and column j of the block.
using PairLogWeight = std::function<double(Index i, Index j)>;

/// Blocks of at most so many rows on their longer side are drawn exactly.
inline constexpr Index most_drawn_exactly = 9;

/// The column of every row of a matrix of log weights, -1 for rows without one: as many links as the shorter side has
/// rows. Not more columns and rows than `most_drawn_exactly`.
[[nodiscard]] std::vector<Index> draw_exactly(const Matrix& log_weights, RandomStream& random);

/// The chain of one larger block.
class LinkChain {
 public:
  /// `column_of_row` is where it starts, -1 for none: as many links as the shorter side has rows. Rows and columns are
  /// in the order of their values.
  LinkChain(std::vector<Index> column_of_row, Index columns);

  /// As many steps as the shorter side has rows, `sweeps` times.
  void run(const PairLogWeight& log_weight, Index sweeps, RandomStream& random);

  [[nodiscard]] std::vector<Index> column_of_row() const;

 private:
  [[nodiscard]] double weight_at(const PairLogWeight& log_weight, Index place, Index partner) const;

  Index rows_;
  bool rows_shorter_;
  std::vector<Index> holders_;  ///< Rows of the shorter side, in their order.
  std::vector<Index> held_;     ///< Their partners; behind these, what is left of the longer side.
};

}  // namespace unshuffle
