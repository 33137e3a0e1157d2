#include "pixels/torch/siam_rpn.hpp"

#include <torch/nn/functional/conv.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/pooling.h>

namespace unshuffle::pixels {

using torch::Tensor;
namespace nn = torch::nn;

namespace {

constexpr int kernel_side = 4;

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t side, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, side).stride(stride));
}

/// Each target's kernels (targets × kernels·channels × 4 × 4) over its own search features, all targets in one call.
Tensor correlate(const Tensor& kernels, const Tensor& features, std::int64_t outputs) {
  const auto targets = features.size(0);
  const auto channels = features.size(1);
  const Tensor moved =
      nn::functional::conv2d(features.reshape({1, targets * channels, features.size(2), features.size(3)}),
                             kernels.reshape({targets * outputs, channels, kernel_side, kernel_side}),
                             nn::functional::Conv2dFuncOptions().groups(targets));
  return moved.reshape({targets, outputs, grid_side, grid_side});
}

}  // namespace

SiamRpn::SiamRpn(const Channels& c)
    : featureExtract(convolution(3, c[0], 11, 2), nn::BatchNorm2d(c[0]),
                     nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2)), nn::ReLU(), convolution(c[0], c[1], 5),
                     nn::BatchNorm2d(c[1]), nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2)), nn::ReLU(),
                     convolution(c[1], c[2], 3), nn::BatchNorm2d(c[2]), nn::ReLU(), convolution(c[2], c[3], 3),
                     nn::BatchNorm2d(c[3]), nn::ReLU(), convolution(c[3], c[4], 3), nn::BatchNorm2d(c[4])),
      conv_r1(convolution(c[4], c[5] * 4 * anchor_count, 3)),
      conv_r2(convolution(c[4], c[5], 3)),
      conv_cls1(convolution(c[4], c[5] * 2 * anchor_count, 3)),
      conv_cls2(convolution(c[4], c[5], 3)),
      regress_adjust(convolution(4 * anchor_count, 4 * anchor_count, 1)) {
  register_module("featureExtract", featureExtract);
  register_module("conv_r1", conv_r1);
  register_module("conv_r2", conv_r2);
  register_module("conv_cls1", conv_cls1);
  register_module("conv_cls2", conv_cls2);
  register_module("regress_adjust", regress_adjust);
}

Tensor SiamRpn::features(const Tensor& targets) { return featureExtract->forward(targets); }

Proposals SiamRpn::propose(const Tensor& target, const Tensor& searches) {
  const Tensor search = featureExtract->forward(searches);
  const Tensor delta = regress_adjust(correlate(conv_r1(target), conv_r2(search), std::int64_t{4} * anchor_count));
  const auto count = search.size(0);
  const Tensor score =
      correlate(conv_cls1(target), conv_cls2(search), std::int64_t{2} * anchor_count).reshape({count, 2, places});
  return {delta.reshape({count, 4, places}), score.select(1, 1) - score.select(1, 0)};
}

Candidates SiamRpn::candidates(const Tensor& target_features, const Tensor& searches) {
  const Proposals proposals = propose(target_features, searches);
  const Tensor anchor = anchors().to(proposals.delta.options()).t();
  const Tensor size = anchor.slice(0, 2, 4);
  const Tensor center = proposals.delta.slice(1, 0, 2) * size + anchor.slice(0, 0, 2);
  return {torch::cat({center, size * proposals.delta.slice(1, 2, 4).exp()}, 1), proposals.logit};
}

Habits SiamRpn::habits() const {
  return {
      .shape_penalty = 0.04, .window_share = 0.44, .size_share = 0.45, .grid_side = grid_side, .anchors = anchor_count};
}

bool SiamRpn::features_stay() const { return all_fixed(featureExtract->parameters()); }

// Adam moves every weight by the same amount, whether its gradient is signal or noise. With thousands of weights
// trained from scratch on one video, noise adds up: with steps as large as those of the biases the loss falls on the
// training frames and rises on all others.
double SiamRpn::rate_of(const Tensor& parameter, double learning_rate) const {
  constexpr double share_of_weights = 0.01;
  if (parameter.dim() == 1) return learning_rate;
  const auto inputs = double(parameter.numel() / parameter.size(0));
  return share_of_weights * learning_rate / inputs;
}

void SiamRpn::start_undecided() {
  const torch::NoGradGuard plain_assignment;
  for (const auto& layer : {regress_adjust, conv_cls2}) {
    layer->weight.zero_();
    layer->bias.zero_();
  }
}

void SiamRpn::freeze(int convolutions_fixed) {
  int convolutions = 0;
  for (const auto& layer : featureExtract->children()) {
    convolutions += layer->as<nn::Conv2d>() != nullptr ? 1 : 0;
    if (convolutions > convolutions_fixed) return;
    for (Tensor& parameter : layer->parameters()) parameter.set_requires_grad(false);
  }
}

Tensor anchors() {
  // Stride 8, scale 8 and ratios .33 .5 1 2 3, sides cut to whole strides as published.
  constexpr double sizes[anchor_count][2] = {{104, 32}, {88, 40}, {64, 64}, {40, 80}, {32, 96}};
  constexpr int stride = 8;
  constexpr int origin = -(grid_side / 2) * stride;
  Tensor result = torch::empty({places, 4}, torch::kFloat64);
  auto values = result.accessor<double, 2>();
  std::int64_t at = 0;
  for (const auto& size : sizes) {
    for (int y = 0; y < grid_side; ++y) {
      for (int x = 0; x < grid_side; ++x, ++at) {
        values[at][0] = origin + stride * x;
        values[at][1] = origin + stride * y;
        values[at][2] = size[0];
        values[at][3] = size[1];
      }
    }
  }
  return result;
}

}  // namespace unshuffle::pixels
