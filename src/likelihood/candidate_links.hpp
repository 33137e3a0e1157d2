// Links given by the row order, some of them wrong.
#pragma once

#include <vector>

#include "links/linked.hpp"

namespace unshuffle {

/// The candidate links with `known` certain ones in front, and a weight per link (empty: all one).
struct CandidateLinks {
  LinkedRows rows;
  Index known = 0;
  Vector weights{};
  std::vector<Index>
      blocks{};  ///< The block of each link, within which a wrong one points elsewhere; empty: one block.

  [[nodiscard]] Index size() const { return rows.size(); }
  [[nodiscard]] Index open() const { return rows.size() - known; }
  [[nodiscard]] Vector weights_or_one() const { return weights.size() > 0 ? weights : Vector::Ones(size()); }
};

}  // namespace unshuffle
