// NanoTrack (github.com/HonglinChu/SiamTrackers), versions 2 and 3: the first blocks of MobileNetV3-small for both
// crops, correlation of every place of the target with every place of the search crop, and one tower of convolutions
// for the scores, one for the boxes. Parameter names are those of the published weights.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include "pixels/torch/finder.hpp"
#include "pixels/torch/state_file.hpp"

namespace unshuffle::pixels {

enum class NanoVersion { two, three };

/// The network's output for a grid of places.
struct NanoAnswer {
  torch::Tensor score;     ///< targets × 2 × side × side: logits of background and target.
  torch::Tensor distance;  ///< targets × 4 × side × side: from the place to the box's left, top, right, bottom.
};

class NanoBackbone;
class NanoHead;

class NanoTrack : public Finder {
 public:
  explicit NanoTrack(NanoVersion version);

  torch::Tensor features(const torch::Tensor& targets) override;
  NanoAnswer answer(const torch::Tensor& target_features, const torch::Tensor& searches);
  Candidates candidates(const torch::Tensor& target_features, const torch::Tensor& searches) override;

  [[nodiscard]] Habits habits() const override;
  [[nodiscard]] int search_side() const override { return 255; }
  [[nodiscard]] std::string model_name() const override { return "NanoTrack"; }
  void freeze(int convolutions) override;
  [[nodiscard]] bool features_stay() const override;
  [[nodiscard]] double rate_of(const torch::Tensor&, double learning_rate) const override { return learning_rate; }

 private:
  NanoVersion version_;
  std::shared_ptr<NanoBackbone> backbone_;
  std::shared_ptr<NanoHead> head_;
};

/// Whether the tensors are NanoTrack's. Throws BadData naming the file if they are those of version 1.
[[nodiscard]] bool is_nano_track(const StateDictionary& state, const std::string& source);
[[nodiscard]] NanoVersion nano_version(const StateDictionary& state);

}  // namespace unshuffle::pixels
