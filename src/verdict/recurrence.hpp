// What several starts of a method without a likelihood say of its answer.
#pragma once

#include <vector>

#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"
#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle {

/// Where a start led.
struct Ending {
  Vector parameters;
  double objective;
};

/// Of the endings, best first. An objective alone cannot tell whether an answer is right, so nothing is assessed; but
/// when another solution is as good to rounding, or none of the other starts came back to this one, that is said.
[[nodiscard]] Identifiability said_by_starts(const std::vector<Ending>& endings, const Problem& problem,
                                             const Model& bound);

}  // namespace unshuffle
