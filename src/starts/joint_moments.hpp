// Starts for several responses: maps that give the features the joint moments of the responses.
#pragma once

#include <vector>

#include "core/random.hpp"

namespace unshuffle {

/// y = offset + z·linear.
struct AffineMap {
  Eigen::RowVectorXd offset;
  Matrix linear;      ///< Features × responses.
  double misfit = 0;  ///< Squared distance of the third and fourth moments, in units of their spread.
};

/// Distinct maps of the rows of z onto those of y that agree in mean and covariance and nearly in third and fourth
/// moments, best first, at most `limit` of them. Empty for one response, for too many features for such moments, and
/// for few rows.
[[nodiscard]] std::vector<AffineMap> maps_of_joint_moments(const Matrix& y, const Matrix& z, std::size_t limit,
                                                           RandomStream random);

}  // namespace unshuffle
