// Probabilities of single links, given that links exclude each other.
#pragma once

#include <vector>

#include "core/random.hpp"

namespace unshuffle {

/// P(π(i) = partner[i]) for every row i, when permutations π have probability proportional to Π_i plan(i, π(i)),
/// exactly for a few rows, else by a Markov chain that begins at `partner`. `plan` is square, not negative, and
/// positive on the pairs given.
[[nodiscard]] Vector link_posterior(const Matrix& plan, const std::vector<Index>& partner, RandomStream random);

}  // namespace unshuffle
