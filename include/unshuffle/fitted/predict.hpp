// Predictions for complete rows, with their uncertainty.
#pragma once

#include "unshuffle/core/export.hpp"
#include "unshuffle/families/family.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

struct Predictions {
  Matrix values;      ///< One column per response.
  Matrix std_errors;  ///< Of `values`, from the uncertainty of the parameters; excludes the noise of a new response.

  struct Interval {
    Matrix low, high;
  };
  /// Holds this share of new responses whose noise has these standard deviations, one per response.
  [[nodiscard]] Interval interval(const VectorRef& noise_sds, double level = 0.95) const;
};

/// Predictions of η as those of the response: its mean, with errors to first order. `trials` may be empty: one each.
[[nodiscard]] Predictions on_scale_of_response(const Family& family, const Predictions& of_eta,
                                               const VectorRef& trials);

/// Holds at least this share of new responses with that law, η being as uncertain as stated.
[[nodiscard]] Predictions::Interval interval_of_responses(const Family& family, const Shape& shape,
                                                          const Predictions& of_eta, const VectorRef& trials,
                                                          double level);

/// `covariance` is that of the parameters w.
[[nodiscard]] Predictions predict_with_errors(const Model& bound, const MatrixRef& x, const MatrixRef& z,
                                              const VectorRef& w, const Matrix& covariance);

}  // namespace unshuffle
