// C_ij = |y_i - f(x_i, z_j; w)|² of all pairs, and the gradient of Σ_ij W_ij C_ij in w.
#pragma once

#include "unshuffle/model/model.hpp"

namespace unshuffle {

/// Both sides, already through basis(); x may have no columns.
struct TwoTables {
  Matrix x;
  Matrix y;
  Matrix z;
};

/// cost becomes n×m.
void squared_costs(const Model& bound, const TwoTables& tables, const VectorRef& w, Matrix& cost);

/// gradient += Σ_ij W_ij ∇C_ij.
void pull_back_costs(const Model& bound, const TwoTables& tables, const MatrixRef& weights, const VectorRef& w,
                     Vector& gradient);

}  // namespace unshuffle
