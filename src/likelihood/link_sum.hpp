// Sums over all one-to-one links of a small group, exactly: log-permanents and the link probabilities in them.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Groups of at most this many features are summed exactly; 2^n terms.
inline constexpr Index most_summed_rows = 12;

struct LinkSum {
  double log_mean = 0;  ///< log of the mean over all links of Π K_iπ(i).
  Matrix probability;   ///< Of every pair; rows sum to one.
};

/// Links of every row to a column of its own, all equally likely beforehand; K = exp(log_kernel), no more rows than
/// columns.
[[nodiscard]] LinkSum sum_over_links(const Matrix& log_kernel);

/// The same for responses that are 0 or 1 and features whose responses are 1 with these probabilities, both sides
/// equally long, any length: a Poisson-binomial probability.
struct CountSum {
  double log_mean = 0;
  Vector expected;  ///< The response of every feature given that their sum is `ones`.
};
[[nodiscard]] CountSum sum_over_counts(const VectorRef& probability, Index ones);

}  // namespace unshuffle
