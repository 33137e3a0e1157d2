// Estimates from several completed data sets, pooled into one.
#pragma once

#include <limits>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// One analysis of each of M completed data sets, such as those of Fitted::sample_links, pooled by Rubin's rules.
struct Pooled {
  Vector estimates;         ///< Their means.
  Matrix covariance;        ///< Mean within data sets plus (1 + 1/M) times that between them.
  Vector freedom;           ///< Degrees of freedom of each estimate; infinite for the normal distribution.
  Vector information_lost;  ///< Share of the information that was missing, of each.

  [[nodiscard]] Vector std_errors() const { return covariance.diagonal().cwiseSqrt(); }
  /// Both ends of the interval of each that holds the truth with this probability, a row each.
  [[nodiscard]] Matrix intervals(double level = 0.95) const;
};

/// `estimates` has a row per data set, `covariances` a matrix. `complete_freedom`: what each analysis would have if its
/// data set were the complete data (Barnard & Rubin 1999). Throws InvalidInput for fewer than two data sets, shapes
/// that differ, and numbers that are not finite or no variances.
[[nodiscard]] Pooled pool(const Matrix& estimates, const std::vector<Matrix>& covariances,
                          double complete_freedom = std::numeric_limits<double>::infinity());

}  // namespace unshuffle
