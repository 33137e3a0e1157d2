// Estimators where the response has another law than the Gaussian.
#pragma once

#include "estimators/unlinked.hpp"
#include "likelihood/family_fit.hpp"
#include "unshuffle/families/fitted_law.hpp"
#include "verdict/order.hpp"

namespace unshuffle {

/// Throws InvalidInput or BadData unless the estimator, the model and the responses suit the family, and what is known
/// of the rows is of use to it.
void require_family(const Input& input, const Estimator& estimator);

/// Throws InvalidInput: Cox regression cannot be fitted without links.
[[noreturn]] void refuse_unlinked_survival();

/// Generalised linear regression on given links.
[[nodiscard]] Estimate family_regression_on(const Input& input, const Family& family, const Links& links,
                                            const std::string& start);

/// The mixture of right and wrong links by any law, and with what is known of links in the order given.
[[nodiscard]] Estimate estimate_family_mixture(const Mixture& mixture, const Input& input);

/// Regression on rows in order, adjusted for the rate of wrong links that is stated.
[[nodiscard]] Estimate estimate_family_adjusted(const Adjusted& options, const Input& input);

/// Coefficients of rows in order.
struct OrderFit {
  const FamilyRows& rows;
  const Vector& parameters;
  const Shape& shape;
  const Matrix& covariance;
};

/// What rows in order say for themselves. `candidates` hold the responses that would agree with their features.
[[nodiscard]] OrderEvidence order_evidence(const Input& input, const CandidateLinks& candidates, const Family& family,
                                           const OrderFit& fit);

/// Maximum likelihood over all links.
[[nodiscard]] Estimate estimate_family_links(const Entropic& options, const Input& input);

/// The shape with its standard errors, which are those of its logarithm times its value.
[[nodiscard]] std::vector<NamedEstimate> named_shape(const Family& family, const Shape& shape,
                                                     const Vector& errors_of_logarithms);

/// Root mean square distance of the responses from their means.
[[nodiscard]] double residual_sd(const Family& family, const FamilyRows& rows, const Vector& eta,
                                 const Vector& weights);

/// ε of the plan at the answer; see objective/transport_form.hpp.
[[nodiscard]] double plan_epsilon(const Input& input, const Family& family, const FamilyRows& rows, const Vector& w,
                                  const Shape& shape);

}  // namespace unshuffle
