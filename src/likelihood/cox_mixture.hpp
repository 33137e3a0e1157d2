// Cox regression on rows in partly correct order.
//
// A right link has the hazard h(t) e^η, a wrong one the hazard q of all rows; both have increments at the event times
// only. With K_i and q_i the likelihoods of these, ℓ_i = log(s(λ_i) K_i + (1 - s(λ_i)) q_i) as in family_mixture.hpp is
// maximised over w, δ and all of h by EM: given the probabilities π_i that links are right, w and h are those of Cox
// regression on rows of weight π_i. docs/mathematics.md §20.
#pragma once

#include "likelihood/family_mixture.hpp"

namespace unshuffle {

struct CoxMixtureFit {
  FamilyMixtureFit fit;
  Vector cumulative;  ///< Baseline hazard up to every row.
};

/// rows.y holds the times. Standard errors are the sandwich's of (w, δ, log h), h as uncertain as it is.
[[nodiscard]] CoxMixtureFit fit_cox_mixture(const FamilyRows& rows, const Vector& event, const LinkOdds& odds);

/// d - Λ of every row where no feature matters: the response that tells whether rows in order agree.
[[nodiscard]] Vector null_residuals(const FamilyRows& rows, const Vector& event);

}  // namespace unshuffle
