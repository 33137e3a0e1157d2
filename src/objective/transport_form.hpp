// The links of a response with another law than the Gaussian as a transport problem of squared distances.
//
// An exponential family without x has log K_ij = (y_i θ_j - b_j)/φ + c_i, and
//   exp(y_i θ_j/φ) = exp(-(y_i - θ_j)²/(2φ)) exp(y_i²/(2φ)) exp(θ_j²/(2φ)),
// so, rows and columns scaled, its plan is the one between y and θ(η) at ε = 2φ: the sorted backend has it. Every row
// must have its partner, since the scaling of columns would otherwise favour some of them. For other laws, and where x,
// trials or an offset of the response couple both sides, the plan is taken on the scale of η, between each response
// alone transformed and the predictors; it serves to match rows. docs/mathematics.md §18.3.
#pragma once

#include <memory>

#include "unshuffle/families/fitted_law.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

struct TransportForm {
  std::shared_ptr<const Problem> problem;
  std::shared_ptr<const Model> model;  ///< Of the same parameters.
  bool exact;                          ///< The plan is that of the likelihood at ε = 2φ.
};

/// A Gaussian problem stays what it is.
[[nodiscard]] TransportForm transport_form(std::shared_ptr<const Problem> problem, std::shared_ptr<const Model> bound,
                                           const Family& family);
/// Of a problem and a model that outlive it.
[[nodiscard]] TransportForm transport_form(const Problem& problem, const Model& bound, const Family& family);

/// Of a law as it was fitted: several responses whose noise has a covariance are whitened.
[[nodiscard]] TransportForm transport_form(std::shared_ptr<const Problem> problem, std::shared_ptr<const Model> bound,
                                           const FittedLaw& law);
[[nodiscard]] TransportForm transport_form(const Problem& problem, const Model& bound, const FittedLaw& law);

}  // namespace unshuffle
