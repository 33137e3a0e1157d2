// Sums over one cloud at the points of another, whatever its potentials are.
#pragma once

#include "transport/point_cloud.hpp"

namespace unshuffle::transport {

/// log Σ_j ν_j exp(v_j - |t_i - s_j|²/ε) at every point t_i of `at`, in box order; ν and s are those of `of`. Boxes are
/// left out where they cannot add 1e-12 to the sum of any point of a box.
[[nodiscard]] Vector log_sums(const PointCloud& at, const PointCloud& of, const Vector& v, double epsilon);

}  // namespace unshuffle::transport
