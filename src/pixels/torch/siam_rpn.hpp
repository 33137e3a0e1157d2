// SiamRPN (Li et al. 2018): a backbone shared by both crops, two heads, and the target's features as kernels that are
// moved over those of the search crop. Parameter names are those of the published weights.
#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "pixels/torch/finder.hpp"

namespace unshuffle::pixels {

constexpr int anchor_count = 5;
constexpr int grid_side = 19;
constexpr int places = anchor_count * grid_side * grid_side;

/// The network's output for every anchor a at every place (x, y), with flat index a·361 + y·19 + x.
struct Proposals {
  torch::Tensor delta;  ///< targets × 4 × places: offsets of the centre and logarithms of the size, against the anchor.
  torch::Tensor logit;  ///< targets × places: of the probability of the target against the background.
};

class SiamRpn : public Finder {
 public:
  explicit SiamRpn(const Channels& channels);

  torch::Tensor features(const torch::Tensor& targets) override;
  /// searches: n×3×271×271.
  Proposals propose(const torch::Tensor& target_features, const torch::Tensor& searches);
  Candidates candidates(const torch::Tensor& target_features, const torch::Tensor& searches) override;

  [[nodiscard]] Habits habits() const override;
  [[nodiscard]] int search_side() const override { return siam_rpn_search_side; }
  [[nodiscard]] std::string model_name() const override { return "SiamRPN"; }

  /// Offsets zero and scores even, whatever the other weights.
  void start_undecided();

  /// Excludes this many leading convolutions and their normalisations from training.
  void freeze(int convolutions) override;
  [[nodiscard]] bool features_stay() const override;
  [[nodiscard]] double rate_of(const torch::Tensor& parameter, double learning_rate) const override;

  torch::nn::Sequential featureExtract;
  torch::nn::Conv2d conv_r1, conv_r2, conv_cls1, conv_cls2, regress_adjust;
};

/// places × 4: centre, width and height of every anchor, in crop pixels from the crop's centre.
[[nodiscard]] torch::Tensor anchors();

}  // namespace unshuffle::pixels
