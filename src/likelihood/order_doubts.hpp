// What the answer from rows in order would be under other assumptions than its own, and what the rows say of them.
#pragma once

#include <string>
#include <vector>

#include "likelihood/candidate_links.hpp"

namespace unshuffle {

struct OrderDoubt {
  enum class Kind { noise, curve, similar_partners, regression } kind;
  std::string assumption;  ///< "wrong links point to similar rows".
  Vector shift;            ///< How far the parameters would move.
  double nats = 0;         ///< By which the rows prefer it to the assumption made.
};

/// An answer whose assumptions are doubted.
struct OrderAssumed {
  Vector parameters;
  Vector link_probability;
  bool normal_noise = true;  ///< Otherwise of any shape.
};

/// For one response, linear models and rows of one block; none elsewhere.
[[nodiscard]] std::vector<OrderDoubt> doubts_of_order(const Model& bound, const CandidateLinks& links,
                                                      const OrderAssumed& answer);

/// The mean of the answer and of those under each doubt, as probable as their nats say, and its covariance.
struct Averaged {
  Vector shift;
  Matrix covariance;
};
[[nodiscard]] Averaged averaged_over(const std::vector<OrderDoubt>& doubts, const Matrix& covariance);

}  // namespace unshuffle
