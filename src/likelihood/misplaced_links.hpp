// Systematic errors of the row order: rows displaced by a few places, or linked to similar rows.
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

/// By how many nats wrong links fit better if they point to rows that are close in one feature than if they point
/// anywhere; `link_probability` is that of each link to be right at w. One response, linear models; 0 elsewhere.
[[nodiscard]] double gain_of_similar_partners(const Model& bound, const CandidateLinks& links, const Vector& w,
                                              const Vector& link_probability);

}  // namespace unshuffle
