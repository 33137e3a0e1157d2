// Costs of boxes and their transport as layers of a network; the backward pass of transport is one adjoint solve.
#pragma once

#include <torch/types.h>

#include "unshuffle/transport/solver.hpp"

namespace unshuffle::pixels {

/// C_ij = ½ (|Δcentre| / diagonal + 1 - IoU) of detections i (rows, no gradient) and predicted boxes j (columns). Boxes
/// are left, top, width, height.
[[nodiscard]] torch::Tensor box_costs(const torch::Tensor& predicted, const torch::Tensor& detected, double diagonal);

/// <C, Γ*(C)>, differentiated through Γ*.
[[nodiscard]] torch::Tensor transport_cost(const torch::Tensor& cost, const transport::SolverOptions& options);

}  // namespace unshuffle::pixels
