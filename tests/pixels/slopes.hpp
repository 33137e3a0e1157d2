// Gradients in a network's parameters against finite differences.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace unshuffle::pixels {

/// Checks the steepest entry of each of these parameters; those before them take the same way back.
inline void expect_true_slopes(torch::nn::Module& network, const std::vector<std::string>& names,
                               const std::function<torch::Tensor()>& loss) {
  network.zero_grad();
  loss().backward();
  const torch::NoGradGuard no_gradient;
  for (const std::string& name : names) {
    const torch::Tensor parameter = network.named_parameters()[name];
    ASSERT_TRUE(parameter.grad().defined()) << name;
    torch::Tensor values = parameter.view(-1);
    const torch::Tensor slopes = parameter.grad().view(-1);
    const auto at = slopes.abs().argmax().item<std::int64_t>();
    const double slope = slopes[at].item<double>();
    const torch::Tensor kept = values[at].clone();
    const auto loss_at = [&](double shift) {
      values[at] = kept + shift;
      return loss().item<double>();
    };
    // The larger the step, the more kinks of activations lie in it.
    double error = std::numeric_limits<double>::infinity();
    for (const double step : {1e-6, 1e-7, 1e-8}) {
      error = std::min(error, std::abs((loss_at(step) - loss_at(-step)) / (2 * step) - slope));
    }
    values[at] = kept;
    EXPECT_NE(slope, 0) << name;
    EXPECT_LT(error, 1e-4 * std::abs(slope) + 1e-8) << name;
  }
}

}  // namespace unshuffle::pixels
