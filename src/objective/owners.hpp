// Which process solves which block.
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

struct BlockSize {
  Index responses;
  Index features;
};

/// Stands for all processes, who share the rows of a block.
constexpr int everyone = -1;

/// For every block the process that solves it. A block that is more than a process's part of all work is everyone's,
/// where blocks can be divided and this one has a row for each; of the others, large ones first, each goes to the
/// process that has least to do.
[[nodiscard]] std::vector<int> owners_of(const std::vector<BlockSize>& blocks, int processes, bool divisible);

}  // namespace unshuffle
