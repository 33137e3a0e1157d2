// What training and tracking need of a Siamese network, whichever it is.
#pragma once

#include <torch/nn/module.h>

#include "pixels/torch/decoding.hpp"

namespace unshuffle::pixels {

class Finder : public torch::nn::Module {
 public:
  /// Of target crops, n×3×127×127. Each is computed alone, so it can be kept.
  virtual torch::Tensor features(const torch::Tensor& targets) = 0;
  virtual Candidates candidates(const torch::Tensor& target_features, const torch::Tensor& searches) = 0;

  [[nodiscard]] virtual Habits habits() const = 0;
  [[nodiscard]] virtual int search_side() const = 0;
  [[nodiscard]] virtual std::string model_name() const = 0;

  /// Of a new network, the parameters that move when nothing else is asked for.
  virtual void freeze(int convolutions) = 0;
  /// Whether features stay the same while this network learns.
  [[nodiscard]] virtual bool features_stay() const = 0;
  /// Adam's step for this parameter, when that of a bias is `learning_rate`.
  [[nodiscard]] virtual double rate_of(const torch::Tensor& parameter, double learning_rate) const = 0;
};

/// Whether none of these parameters learns.
[[nodiscard]] inline bool all_fixed(const std::vector<torch::Tensor>& parameters) {
  for (const torch::Tensor& parameter : parameters) {
    if (parameter.requires_grad()) return false;
  }
  return true;
}

}  // namespace unshuffle::pixels
