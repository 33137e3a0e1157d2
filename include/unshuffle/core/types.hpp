// Types used everywhere.
#pragma once

#include <Eigen/Core>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

using Index = Eigen::Index;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;
using VectorRef = Eigen::Ref<const Vector>;
using MatrixRef = Eigen::Ref<const Matrix>;

/// The two tables: D1 = (x, y) holds the responses, D2 = z the features whose row links are lost.
enum class Side { response, feature };

/// What the outer problem minimises over w.
enum class Objective {
  transport,  ///< F(w) = <C(w), Γ*(w)>, as in the paper; differentiated through Γ* by one adjoint solve.
  entropic,   ///< The optimal value of the lower problem itself; with ε = 2σ² it is a Gaussian log-likelihood.
};

}  // namespace unshuffle
