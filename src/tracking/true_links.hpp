// Which detection belongs to which track, where the ground truth is known.
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"
#include "unshuffle/tracking/sequence.hpp"

namespace unshuffle::tracking {

/// Of each box in one frame the detection in the next one that has the same ground-truth identity; -1: none.
[[nodiscard]] std::vector<Index> true_links(const std::vector<Box>& before,
                                            const std::vector<LabelledBox>& truth_before,
                                            const std::vector<Box>& detections, const std::vector<LabelledBox>& truth);

}  // namespace unshuffle::tracking
