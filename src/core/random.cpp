#include "core/random.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace unshuffle {

void shuffle(std::vector<Index>& rows, RandomStream& random) {
  for (auto k = Index(rows.size()) - 1; k > 0; --k)
    std::swap(rows[std::size_t(k)], rows[std::size_t(random.below(k + 1))]);
}

std::vector<Index> sample_rows(Index total, Index count, RandomStream& random) {
  std::vector<Index> rows;
  if (count >= total) {
    rows.resize(static_cast<std::size_t>(total));
    std::iota(rows.begin(), rows.end(), Index{0});
    return rows;
  }
  // Floyd's algorithm: each subset equally likely, memory for the sample only.
  std::unordered_set<Index> taken;
  for (Index last = total - count; last < total; ++last) {
    const Index candidate = random.below(last + 1);
    const Index row = taken.contains(candidate) ? last : candidate;
    taken.insert(row);
    rows.push_back(row);
  }
  shuffle(rows, random);
  return rows;
}

}  // namespace unshuffle
