// Cox regression on rows in partly correct order.
//
// Every response has the hazard h(t) e^η of its true features. Where link i is right these are the features beside it,
// with the likelihood K_i; else they are those of any row, with the mean likelihood Q_i. With λ the log odds that a
// link is right, π_i = s(λ_i) K_i/(s(λ_i) K_i + (1 - s(λ_i)) Q_i), and T_i the mean of e^η given the response,
//   Σ π_i (d_i - Λ_i e^{η_i}) x_i = 0,   Σ (π_i - s(λ_i)) v_i = 0,   h_k = events / Σ_{at risk} T_i.
// All responses tell of the baseline, whichever links are right, and its increments cancel in K_i/Q_i: where each
// increment is that of one kind of row only (Bukke et al. 2025), it is as large as the event is thought to be right,
// which makes rows certain of either. docs/mathematics.md §21.
#pragma once

#include "likelihood/family_mixture.hpp"

namespace unshuffle {

struct CoxMixtureFit {
  FamilyMixtureFit fit;
  Vector cumulative;  ///< Baseline hazard up to every row.
};

/// rows.y holds the times. Standard errors are the sandwich's of (w, δ, h), h as uncertain as it is.
[[nodiscard]] CoxMixtureFit fit_cox_mixture(const FamilyRows& rows, const Vector& event, const LinkOdds& odds);

/// d - Λ of every row where no feature matters: the response that tells whether rows in order agree.
[[nodiscard]] Vector null_residuals(const FamilyRows& rows, const Vector& event);

}  // namespace unshuffle
