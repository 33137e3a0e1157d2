// The assignment of blocks to processes.
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

struct BlockSize {
  Index responses;
  Index features;
};

/// Means all processes, which share the rows of a block.
constexpr int everyone = -1;

/// For every block the process that solves it. A block larger than one process's share of all work is shared by all, if
/// blocks can be divided and it has a row for each; the others, largest first, go to the process with the least work.
[[nodiscard]] std::vector<int> owners_of(const std::vector<BlockSize>& blocks, int processes, bool divisible);

}  // namespace unshuffle
