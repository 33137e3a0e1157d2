// Cox regression: the hazard of row i is e^{η_i} times a baseline of any shape. Ties by Efron's method.
//
// At an event time k with m events, sums over the rows at risk S = Σ r, S¹ = Σ r x, S² = Σ r x xᵀ, r = e^η, and the
// same sums D over its events, Efron's l-th of m risk sets has the sums S_l = S - (l/m) D. An event's weight is their
// mean W/m:
//   log L = Σ_events w η - Σ_k W/m Σ_l log S_l,   increments of the baseline h_k = W/m Σ_l 1/S_l.
// Its score in w is that of the counts Σ d (η + log h) - r Λ in which an event at time k is exposed to the share
// φ_k = Σ_l (1 - l/m)/S_l / Σ_l 1/S_l of h_k, and all others at risk to the whole. docs/mathematics.md §21.
#pragma once

#include <functional>
#include <vector>

#include "likelihood/family_fit.hpp"

namespace unshuffle {

/// Which rows are at risk when.
struct RiskSets {
  RiskSets(const Vector& time, const Vector& event);

  std::vector<Index> last;                  ///< Of every row: how many of the event times it was at risk at.
  std::vector<std::vector<Index>> events;   ///< The rows of the events at each event time, times ascending.
  std::vector<std::vector<Index>> leaving;  ///< Rows whose last event time it is.
  std::vector<Index> at;                    ///< Event time of every row; -1: it has no event.

  [[nodiscard]] Index times() const { return Index(events.size()); }
};

/// Σ r, Σ r x and Σ r x xᵀ of some rows.
struct RiskSum {
  double zero = 0;
  Vector one;
  Matrix two;
};

/// Adds a row to a sum.
using AddRow = std::function<void(Index row, RiskSum& sum)>;

/// Sums over event times, given what rows add to the sums over those at risk.
struct CoxSums {
  double log_risk = 0;  ///< Σ W/m Σ_l log S_l; NaN where a sum is not positive.
  Vector mean;          ///< Σ W/m Σ_l S¹_l/S_l.
  Matrix information;   ///< Σ W/m Σ_l (S²_l/S_l - S¹_l S¹_lᵀ/S_l²).
  Vector hazard;        ///< h of every event time,
  Vector own;           ///< φ of every event time,
  Matrix means;         ///< and the mean of S¹_l/S_l over l: a row per event time.
};
[[nodiscard]] CoxSums cox_sums(const RiskSets& risk, const Vector& weights, Index parameters, const AddRow& add);

/// Σ_k E_ik v_k over the event times to which each row is exposed.
[[nodiscard]] Vector exposed(const RiskSets& risk, const Vector& own, const Vector& values);
/// Its transpose: Σ_i E_ik v_i.
[[nodiscard]] Vector exposure_sums(const RiskSets& risk, const Vector& own, const Vector& values);

/// Cumulative baseline hazard up to every row, at predictors η, and its increment at every event time.
struct Baseline {
  Vector cumulative;
  Vector hazard;
  Vector own;
};
[[nodiscard]] Baseline baseline_of(const RiskSets& risk, const Vector& weights, const Vector& eta);

/// Minus the log partial likelihood of w.
[[nodiscard]] Sample cox_sample(const RiskSets& risk, const FamilyRows& rows, const Vector& weights, const Vector& w,
                                bool with_hessian);

/// Maximum partial likelihood; rows.y holds the times. There is no deviance.
[[nodiscard]] FamilyFit fit_cox(const FamilyRows& rows, const Vector& event);

/// Minus the log partial likelihood of w.
[[nodiscard]] double cox_objective(const FamilyRows& rows, const Vector& event, const Vector& w);

/// The rows as counts of events with the log cumulative baseline hazard in their offset: a given one, or that at w.
[[nodiscard]] FamilyRows as_counts(const FamilyRows& rows, const Vector& event, const Vector& cumulative);
[[nodiscard]] FamilyRows with_baseline(const FamilyRows& rows, const Vector& event, const Vector& w);

}  // namespace unshuffle
