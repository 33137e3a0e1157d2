// Consensus over rows linked in the given order, some of them wrongly (docs/mathematics.md §11.1).
//
// The data, not a fixed threshold, decides what counts as an inlier. A hypothesis w gives N residuals |r_i|;
// the same w on rows paired at random gives a background, α(t) = P(|r| ≤ t by chance). If k residuals are below t, the
// chance of so many is at most exp(-N·KL(k/N ‖ α(t))) (Chernoff). The threshold of a hypothesis is the t where this is
// smallest, its score is that N·KL in nats, and the best hypothesis is the one whose consensus is least likely an
// accident (a contrario RANSAC: Moisan & Stival 2004). The last refit weights every row by its probability of being
// linked rightly. A score that does not exceed the logarithm of the number of thresholds and samples tried means that
// there is no consensus.
#pragma once

#include "core/random.hpp"
#include "links/linked.hpp"

namespace unshuffle {

struct Consensus {
  Vector parameters;
  double threshold = 0;     ///< Of |r|, in the unit of y.
  double inlier_share = 0;  ///< Estimated share of rows linked rightly.
  double noise_sd = 0;      ///< Of their residuals, per output.
  Matrix covariance;        ///< Of `parameters`, from the inliers; empty when there is no consensus.
  double score = 0;         ///< Nats by which the consensus beats chance, corrected for the number of trials.
  int samples = 0;

  [[nodiscard]] bool significant() const { return score > 0 && covariance.size() > 0; }
};

struct RansacOptions {
  Index rows = 1000;         ///< Hypotheses are scored on at most this many rows; the last refits use all.
  int max_samples = 20000;   ///< Enough for 99.9 % certainty when a third of the rows is linked rightly and p = 6.
  double certainty = 0.999;  ///< Stop when an all-inlier sample has been drawn with this probability.
};

[[nodiscard]] Consensus ransac(const Model& bound, const LinkedRows& rows, RandomStream random,
                               const RansacOptions& options = {});

}  // namespace unshuffle
