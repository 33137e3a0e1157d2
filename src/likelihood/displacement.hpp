// Systematic errors of the row order: rows displaced by a few places.
#pragma once

#include "likelihood/candidate_links.hpp"

namespace unshuffle {

/// Response i fits best with features i + places; 0: the given order is as good as any near it.
struct Displacement {
  Index places = 0;
  double nats = 0;  ///< Ahead of the order given.
};

/// Tries fifty places to both sides. Only for one block of linked rows with one response and all features in the other
/// table; otherwise no displacement is reported.
[[nodiscard]] Displacement displacement_of(const Model& bound, const CandidateLinks& links);

}  // namespace unshuffle
