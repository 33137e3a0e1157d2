// SiamRPN (Li et al. 2018): a backbone shared by both crops, two heads, and the target's features as kernels that are
// moved over those of the search crop. Parameter names are those of the published weights.
#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "unshuffle/pixels/siamese.hpp"

namespace unshuffle::pixels {

constexpr int anchor_count = 5;
constexpr int grid_side = 19;
constexpr int places = anchor_count * grid_side * grid_side;

/// The network's output for every anchor a at every place (x, y), with flat index a·361 + y·19 + x.
struct Proposals {
  torch::Tensor delta;  ///< targets × 4 × places: offsets of the centre and logarithms of the size, against the anchor.
  torch::Tensor score;  ///< targets × places: probability of the target against the background.
};

class SiamRpn : public torch::nn::Module {
 public:
  explicit SiamRpn(const Channels& channels);

  /// targets: n×3×127×127, searches: n×3×271×271.
  Proposals forward(const torch::Tensor& targets, const torch::Tensor& searches);

  /// Offsets zero and scores even, whatever the other weights.
  void start_undecided();

  /// Excludes this many leading convolutions and their normalisations from training.
  void freeze(int layers);

  torch::nn::Sequential featureExtract;
  torch::nn::Conv2d conv_r1, conv_r2, conv_cls1, conv_cls2, regress_adjust;
};

/// places × 4: centre, width and height of every anchor, in crop pixels from the crop's centre.
[[nodiscard]] torch::Tensor anchors();

/// The proposal chosen for each target, and how much of its size is used. Boxes are n×4: left, top, width, height, in
/// image pixels.
struct Choice {
  torch::Tensor place;  ///< n×1.
  torch::Tensor share;  ///< n×1.
};
[[nodiscard]] Choice choose(const Proposals& proposals, const torch::Tensor& last);

/// The boxes of the chosen proposals, seen from the last boxes; differentiable in the proposals.
[[nodiscard]] torch::Tensor chosen_boxes(const Proposals& proposals, const Choice& choice, const torch::Tensor& last);

}  // namespace unshuffle::pixels
