// Regression of linked rows some of which are linked wrongly: Huber's loss as a least-squares problem with a sparse
// shift.
//
//   min over w, e of  Σ_i |y_i - f_i(w) - e_i|² + 2δ Σ_i |e_i|
// The best e is the residual shrunk by δ, e_i = r_i (1 - δ/|r_i|)₊; substituted, row i contributes |r_i|² up to δ and
// 2δ|r_i| - δ² beyond: Huber's loss. Block coordinate descent alternates the two exact minimisers; outliers pull with
// the constant force 2δ, however far off they are.
#pragma once

#include "links/linked.hpp"

namespace unshuffle {

struct HuberFit {
  Vector parameters;
  double loss = 0;
  int iterations = 0;
  bool converged = false;
};

/// `threshold` δ in the unit of the response; f must be linear in w.
[[nodiscard]] HuberFit huber_regression(const Model& bound, const LinkedRows& rows, double threshold,
                                        const VectorRef& start, const Vector& row_weights = {},
                                        int max_iterations = 2000);

}  // namespace unshuffle
