#include "pixels/torch/siam_rpn.hpp"

#include <torch/nn/functional/conv.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/pooling.h>

namespace unshuffle::pixels {

using torch::Tensor;
namespace nn = torch::nn;

namespace {

constexpr double size_penalty = 0.04;
constexpr double window_influence = 0.44;
constexpr double size_learning_rate = 0.45;
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

Proposals SiamRpn::forward(const Tensor& targets, const Tensor& searches) {
  const Tensor target = featureExtract->forward(targets);
  const Tensor search = featureExtract->forward(searches);
  const Tensor delta = regress_adjust(correlate(conv_r1(target), conv_r2(search), std::int64_t{4} * anchor_count));
  const Tensor score = correlate(conv_cls1(target), conv_cls2(search), std::int64_t{2} * anchor_count);
  const auto count = targets.size(0);
  return {delta.reshape({count, 4, places}), score.reshape({count, 2, places}).softmax(1).select(1, 1)};
}

void SiamRpn::start_undecided() {
  const torch::NoGradGuard plain_assignment;
  for (const auto& layer : {regress_adjust, conv_cls2}) {
    layer->weight.zero_();
    layer->bias.zero_();
  }
}

void SiamRpn::freeze(int layers) {
  int convolutions = 0;
  for (const auto& layer : featureExtract->children()) {
    convolutions += layer->as<nn::Conv2d>() != nullptr ? 1 : 0;
    if (convolutions > layers) return;
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

namespace {

/// √((w+p)(h+p)), p = (w+h)/2.
Tensor context(const Tensor& width, const Tensor& height) {
  const Tensor margin = (width + height) / 2;
  return ((width + margin) * (height + margin)).sqrt();
}

/// exp(-k (r s - 1)) with r and s ≥ 1 how much ratio and size differ from those of the last box.
Tensor penalty(const Tensor& width, const Tensor& height, const Tensor& last_width, const Tensor& last_height) {
  const auto change = [](const Tensor& ratio) { return torch::maximum(ratio, 1 / ratio); };
  const Tensor size = change(context(width, height) / context(last_width, last_height));
  const Tensor ratio = change((last_width / last_height) / (width / height));
  return torch::exp(-(ratio * size - 1) * size_penalty);
}

/// Crop pixels per image pixel, n×1.
Tensor scale_of(const Tensor& last) { return target_side / context(last.slice(1, 2, 3), last.slice(1, 3, 4)); }

}  // namespace

// The proposal is chosen by score, similarity of shape and distance from the crop's centre; its score and shape also
// determine how much of its size to use. Neither is differentiated: no gradient shows whether another proposal would
// have been better, and scores trained through the size's share only make the choice jump.
Choice choose(const Proposals& proposals, const Tensor& last) {
  const torch::NoGradGuard not_differentiated;
  const auto as = proposals.delta.options();
  const Tensor sizes = anchors().to(as).slice(1, 2, 4).t() * proposals.delta.slice(1, 2, 4).exp();
  const Tensor last_size = last.slice(1, 2, 4) * scale_of(last);
  const Tensor likeness =
      penalty(sizes.select(1, 0), sizes.select(1, 1), last_size.slice(1, 0, 1), last_size.slice(1, 1, 2));
  const Tensor hann = torch::hann_window(grid_side, false, as);
  const Tensor window = torch::outer(hann, hann).flatten().repeat(anchor_count);
  const Tensor believed = proposals.score * likeness;
  const Tensor place = (believed * (1 - window_influence) + window * window_influence).argmax(1, true);
  return {place, size_learning_rate * believed.gather(1, place)};
}

Tensor chosen_boxes(const Proposals& proposals, const Choice& choice, const Tensor& last) {
  const Tensor delta = proposals.delta.gather(2, choice.place.unsqueeze(1).expand({-1, 4, 1})).squeeze(2);
  const Tensor anchor = anchors().to(delta.options()).index_select(0, choice.place.flatten());
  const Tensor scale = scale_of(last);
  const Tensor offset = (delta.slice(1, 0, 2) * anchor.slice(1, 2, 4) + anchor.slice(1, 0, 2)) / scale;
  const Tensor size = anchor.slice(1, 2, 4) * delta.slice(1, 2, 4).exp() / scale;
  const Tensor last_size = last.slice(1, 2, 4);
  const Tensor new_size = last_size * (1 - choice.share) + size * choice.share;
  const Tensor center = last.slice(1, 0, 2) + last_size / 2 + offset;
  return torch::cat({center - new_size / 2, new_size}, 1);
}

}  // namespace unshuffle::pixels
