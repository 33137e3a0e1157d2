// A Metropolis chain over matchings: two links exchange their partners, accepted by the likelihood.
//
// With Gaussian noise of variance σ² a matching π has log-likelihood -Σ C(i, π(i))/2σ². Exchanging the partners of two
// positions changes four terms of the sum, so a proposal costs O(1). In a block of unequal sides the positions are the
// rows of the shorter side, and rows of the longer one that no position holds are exchanged in and out at no cost.
//
// The E step needs how long each pair was linked. A pair is recorded when it is broken up, with the time since it was
// formed, so an accepted exchange costs O(1) too and an unchanged pair costs nothing.
#pragma once

#include <vector>

#include "core/random.hpp"
#include "estimators/unlinked.hpp"
#include "links/linked.hpp"

namespace unshuffle {

/// C_ij at a fixed w in O(1): from the two parts of an additive model, else from the whole matrix.
class PairCosts {
 public:
  PairCosts(const Model& bound, const TwoTables& tables, const VectorRef& w);
  [[nodiscard]] double operator()(Index i, Index j) const {
    return whole_.size() > 0 ? whole_(i, j) : (t_.col(i) - s_.col(j)).squaredNorm();
  }

 private:
  Matrix t_;  ///< o×n, so that a row's outputs lie together.
  Matrix s_;
  Matrix whole_;
};

/// Links with the share of time each was in place.
struct WeightedLinks {
  Links links;
  std::vector<double> shares;
};

class SwapChain {
 public:
  /// Starts at `start`; rows of a block missing from `start` are linked in order.
  SwapChain(const std::vector<Block>& blocks, const Links& start, RandomStream random);

  /// Proposes `burn_in` exchanges unrecorded, then `kept` recorded ones.
  WeightedLinks sample(const PairCosts& costs, double variance, long burn_in, long kept);

  /// The links of least total cost among those visited by as many proposals, the first included.
  Links best_visited(const PairCosts& costs, double variance, long proposals);

  [[nodiscard]] Links links() const;
  [[nodiscard]] double total_cost(const PairCosts& costs) const;
  [[nodiscard]] Index positions() const { return static_cast<Index>(holders_.size()); }

 private:
  /// A position: a row of its block's shorter side and the place of its partner among the longer side's rows.
  struct BlockState {
    std::vector<Index> longer;  ///< Places 0 .. positions-1 are held, the rest are free.
    std::size_t first = 0;      ///< Its first position.
    std::size_t positions = 0;
    bool responses_shorter = true;
  };
  struct Exchange {
    std::size_t block;
    std::size_t place;
    std::size_t other;
  };

  [[nodiscard]] Exchange propose();
  [[nodiscard]] double change(const PairCosts& costs, const Exchange& exchange) const;
  [[nodiscard]] bool accepts(double change, double variance);
  void apply(const Exchange& exchange);
  [[nodiscard]] double cost(const PairCosts& costs, const BlockState& block, std::size_t place, Index longer_row) const;
  void close(const BlockState& block, std::size_t place, long now, WeightedLinks& into);
  [[nodiscard]] KnownPair pair_at(const BlockState& block, std::size_t place) const;

  std::vector<BlockState> blocks_;
  std::vector<Index> holders_;         ///< Rows of the shorter sides, block after block.
  std::vector<std::size_t> block_of_;  ///< Of each position.
  std::vector<long> since_;            ///< When the pair of each position was formed.
  RandomStream random_;
};

}  // namespace unshuffle
