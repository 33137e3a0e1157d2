#include "objective/owners.hpp"

#include <algorithm>
#include <numeric>

namespace unshuffle {

std::vector<int> owners_of(const std::vector<BlockSize>& blocks, int processes, bool divisible) {
  const auto work = [&](std::size_t b) { return double(blocks[b].responses) * double(blocks[b].features); };
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  double total = 0;
  for (const std::size_t b : order) total += work(b);
  std::vector<int> owners(blocks.size());
  std::vector<double> load(static_cast<std::size_t>(processes), 0);
  for (const std::size_t b : order) {
    if (divisible && work(b) * processes > total && std::max(blocks[b].responses, blocks[b].features) >= processes &&
        processes > 1) {
      owners[b] = everyone;
      continue;
    }
    const auto least = std::min_element(load.begin(), load.end());
    owners[b] = static_cast<int>(least - load.begin());
    *least += work(b);
  }
  return owners;
}

}  // namespace unshuffle
