#include "estimators/swap_chain.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle {

PairCosts::PairCosts(const Model& bound, const TwoTables& tables, const VectorRef& w) {
  const AdditiveModel* sum = bound.additive();
  if (sum == nullptr) {
    squared_costs(bound, tables, w, whole_);
    return;
  }
  t_ = (tables.y - sum->part(Side::response, tables.x, w)).transpose();
  s_ = sum->part(Side::feature, tables.z, w).transpose();
}

SwapChain::SwapChain(const std::vector<Block>& blocks, const Links& start, RandomStream random) : random_(random) {
  Index rows = 0;
  for (const Index i : start.responses) rows = std::max(rows, i + 1);
  std::vector<Index> feature_of(std::size_t(rows), -1);
  for (std::size_t k = 0; k < start.responses.size(); ++k) {
    feature_of[std::size_t(start.responses[k])] = start.features[k];
  }
  const auto partner = [&](Index i) { return i < rows ? feature_of[std::size_t(i)] : Index{-1}; };
  for (const Block& block : blocks) {
    BlockState state;
    state.responses_shorter = block.response_rows.size() <= block.feature_rows.size();
    state.first = holders_.size();
    // Linked pairs first, then what is left of either side in order.
    std::vector<Index> responses;
    std::vector<Index> features;
    for (const Index i : block.response_rows) {
      if (partner(i) >= 0) {
        responses.push_back(i);
        features.push_back(partner(i));
      }
    }
    const auto rest = [](const std::vector<Index>& all, std::vector<Index>& some) {
      std::vector<Index> taken = some;
      std::sort(taken.begin(), taken.end());
      std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                   [&](Index row) { return !std::binary_search(taken.begin(), taken.end(), row); });
    };
    rest(block.response_rows, responses);
    rest(block.feature_rows, features);
    const auto& shorter = state.responses_shorter ? responses : features;
    state.longer = state.responses_shorter ? features : responses;
    state.positions = shorter.size();
    holders_.insert(holders_.end(), shorter.begin(), shorter.end());
    block_of_.insert(block_of_.end(), shorter.size(), blocks_.size());
    blocks_.push_back(std::move(state));
  }
  since_.assign(holders_.size(), 0);
}

KnownPair SwapChain::pair_at(const BlockState& block, std::size_t place) const {
  const Index holder = holders_[block.first + place];
  const Index held = block.longer[place];
  return block.responses_shorter ? KnownPair{holder, held} : KnownPair{held, holder};
}

double SwapChain::cost(const PairCosts& costs, const BlockState& block, std::size_t place, Index longer_row) const {
  if (place >= block.positions) return 0;
  const Index holder = holders_[block.first + place];
  return block.responses_shorter ? costs(holder, longer_row) : costs(longer_row, holder);
}

SwapChain::Exchange SwapChain::propose() {
  const auto position = static_cast<std::size_t>(random_.below(positions()));
  const std::size_t block = block_of_[position];
  const auto other = static_cast<std::size_t>(random_.below(static_cast<Index>(blocks_[block].longer.size())));
  return {block, position - blocks_[block].first, other};
}

double SwapChain::change(const PairCosts& costs, const Exchange& exchange) const {
  const BlockState& block = blocks_[exchange.block];
  const Index mine = block.longer[exchange.place];
  const Index yours = block.longer[exchange.other];
  return cost(costs, block, exchange.place, yours) + cost(costs, block, exchange.other, mine) -
         cost(costs, block, exchange.place, mine) - cost(costs, block, exchange.other, yours);
}

bool SwapChain::accepts(double change, double variance) {
  return change <= 0 || random_.uniform() < std::exp(-change / (2 * variance));
}

void SwapChain::apply(const Exchange& exchange) {
  BlockState& block = blocks_[exchange.block];
  std::swap(block.longer[exchange.place], block.longer[exchange.other]);
}

void SwapChain::close(const BlockState& block, std::size_t place, long now, WeightedLinks& into) {
  if (place >= block.positions) return;
  long& since = since_[block.first + place];
  if (now > since) {
    const KnownPair pair = pair_at(block, place);
    into.links.responses.push_back(pair.response_row);
    into.links.features.push_back(pair.feature_row);
    into.shares.push_back(static_cast<double>(now - since));
  }
  since = now;
}

WeightedLinks SwapChain::sample(const PairCosts& costs, double variance, long burn_in, long kept) {
  for (long step = 0; step < burn_in; ++step) {
    const Exchange exchange = propose();
    if (exchange.place != exchange.other && accepts(change(costs, exchange), variance)) apply(exchange);
  }
  WeightedLinks result;
  std::fill(since_.begin(), since_.end(), 0L);
  for (long now = 0; now < kept; ++now) {
    const Exchange exchange = propose();
    if (exchange.place == exchange.other || !accepts(change(costs, exchange), variance)) continue;
    close(blocks_[exchange.block], exchange.place, now, result);
    close(blocks_[exchange.block], exchange.other, now, result);
    apply(exchange);
  }
  for (const BlockState& block : blocks_) {
    for (std::size_t place = 0; place < block.positions; ++place) close(block, place, kept, result);
  }
  for (double& share : result.shares) share /= static_cast<double>(kept);
  return result;
}

Links SwapChain::best_visited(const PairCosts& costs, double variance, long proposals) {
  std::vector<Exchange> taken;
  std::size_t best = 0;
  double here = 0;
  double least = 0;
  for (long step = 0; step < proposals; ++step) {
    const Exchange exchange = propose();
    if (exchange.place == exchange.other) continue;
    const double rise = change(costs, exchange);
    if (!accepts(rise, variance)) continue;
    apply(exchange);
    taken.push_back(exchange);
    here += rise;
    if (here < least) {
      least = here;
      best = taken.size();
    }
  }
  // An exchange undoes itself.
  for (std::size_t k = taken.size(); k > best; --k) apply(taken[k - 1]);
  return links();
}

Links SwapChain::links() const {
  Links result;
  for (const BlockState& block : blocks_) {
    for (std::size_t place = 0; place < block.positions; ++place) {
      const KnownPair pair = pair_at(block, place);
      result.responses.push_back(pair.response_row);
      result.features.push_back(pair.feature_row);
    }
  }
  return result;
}

double SwapChain::total_cost(const PairCosts& costs) const {
  double total = 0;
  for (const BlockState& block : blocks_) {
    for (std::size_t place = 0; place < block.positions; ++place)
      total += cost(costs, block, place, block.longer[place]);
  }
  return total;
}

}  // namespace unshuffle
