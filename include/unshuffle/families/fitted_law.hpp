// The law of the responses as it was fitted.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"
#include "unshuffle/families/family.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A number with its standard error; NaN where unknown.
struct NamedEstimate {
  std::string name;
  double value;
  double std_error;
};

struct FittedLaw {
  FamilyKind family = FamilyKind::gaussian;
  FamilyKind suggested = FamilyKind::gaussian;  ///< By the look of the responses; Gaussian: nothing speaks against it.
  std::vector<NamedEstimate> shape{};           ///< Dispersion and the like; a Gaussian fit has its noise instead.
  double deviance = std::nan("");
  double log_likelihood = std::nan("");
  Matrix noise_covariance{};              ///< Of several responses, where it was estimated.
  std::string link_sums{};                ///< How all links were summed; empty: they were not.
  std::vector<NamedEstimate> mismatch{};  ///< Coefficients of the log odds that a link in the order given is right.

  [[nodiscard]] Shape log_shape() const {
    Shape made = Shape::Zero();
    for (std::size_t k = 0; k < shape.size() && k < 2; ++k) made(Index(k)) = std::log(shape[k].value);
    return made;
  }
};

}  // namespace unshuffle
