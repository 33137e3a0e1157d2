// Regression with the response law of a family, on linked rows.
#pragma once

#include "likelihood/candidate_links.hpp"
#include "likelihood/row_likelihood.hpp"
#include "unshuffle/families/family.hpp"

namespace unshuffle {

/// Linked rows of a model that is linear in w, as a family sees them: η = design·w + offset.
struct FamilyRows {
  Matrix design;
  Vector y;
  Vector offset;   ///< One per row.
  Vector trials;   ///< Likewise.
  Vector weights;  ///< Likewise.
  Index known = 0;

  [[nodiscard]] Index size() const { return y.size(); }
  [[nodiscard]] Observation at(Index row, double eta) const { return {y(row), eta, trials(row)}; }
};

[[nodiscard]] FamilyRows family_rows(const Problem& problem, const Model& bound, const Links& links,
                                     const CandidateLinks& candidates);

struct FamilyFit {
  Vector parameters;
  Shape shape = Shape::Zero();
  Matrix covariance;    ///< Of the parameters.
  Vector shape_errors;  ///< Standard errors of τ.
  double deviance = 0;
  double log_likelihood = 0;
  bool converged = false;
  bool unbounded = false;
  int iterations = 0;
};

/// ℓ of every row as a function of (η, τ).
[[nodiscard]] RowLikelihood family_likelihood(const Family& family, const FamilyRows& rows, const Vector& weights);

/// Where a search for (w, τ) begins: least squares on the scale of η.
[[nodiscard]] Vector first_guess(const Family& family, const FamilyRows& rows, const Vector& weights);

/// Maximum likelihood. Laws whose shape is only a dispersion have it from Pearson's statistic and standard errors from
/// the expected information, as is usual for generalised linear models; others from the observed one of all parameters.
[[nodiscard]] FamilyFit fit_family(const Family& family, const FamilyRows& rows);

[[nodiscard]] double deviance_of(const Family& family, const FamilyRows& rows, const Vector& eta, const Shape& shape);

/// Σ v I(η) aaᵀ.
[[nodiscard]] Matrix expected_information(const Family& family, const FamilyRows& rows, const Vector& eta,
                                          const Shape& shape);

/// The shape part of (w, τ, ...).
[[nodiscard]] Shape shape_in(const Family& family, const Vector& theta, Index parameters);

}  // namespace unshuffle
