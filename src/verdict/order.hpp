// The verdict on answers that rest on the row order.
#pragma once

#include "likelihood/candidate_links.hpp"
#include "likelihood/displacement.hpp"
#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle {

/// What is known of such an answer.
struct OrderEvidence {
  double rows = 0;    ///< Links in the order given.
  double linked = 0;  ///< How many of them are taken to be right.
  Index parameters = 0;
  double chance = 0;        ///< Probability of agreement this good if no link in the order given is right.
  double error = 0;         ///< Root mean square standard error of predictions, in standard deviations of the noise.
  double agreement = 1;     ///< With regression on all rows, as a probability.
  double independence = 1;  ///< Of wrong links and features, as a probability.
  double normal_independence = 1;  ///< The same with normal noise, where the answer has another law.
  bool told_by_few = false;        ///< Responses of two values: each tells little of whether its link is right.
  bool limited = false;            ///< The likelihood alone would call more links wrong than can be.
  Displacement displacement{};     ///< The best of the orders near the one given.
  double similar_partners = 0;     ///< Nats by which wrong links look like links to similar rows.
  Index tied = 0;                  ///< Responses of one value that the likelihood would take for all right links.
  bool only_ties = false;          ///< It does.
  std::string rests_on;            ///< Completes "rests on".
};

/// Whether rows in order agree no better than any others.
[[nodiscard]] bool order_is_chance(const OrderEvidence& evidence);

/// Whether regression on all rows, or wrong links that depend on the features, say that the likelihood does not hold.
[[nodiscard]] bool contradicted(const OrderEvidence& evidence);

[[nodiscard]] Identifiability judge(const OrderEvidence& evidence);

/// Root mean square standard error of predictions for linked rows, in standard deviations of the noise.
[[nodiscard]] double error_in_noise(const LinkedRows& rows, const Model& bound, const Vector& w,
                                    const Matrix& covariance, double noise_variance);

}  // namespace unshuffle
