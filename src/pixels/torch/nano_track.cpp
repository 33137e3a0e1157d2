#include "pixels/torch/nano_track.hpp"

#include <fmt/format.h>
#include <torch/nn/functional/conv.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "unshuffle/core/error.hpp"

namespace unshuffle::pixels {

using torch::Tensor;
namespace nn = torch::nn;

namespace nano {

constexpr int grid_step = 16;               // crop pixels
constexpr std::int64_t target_places = 64;  // 8×8 features of the target

nn::Conv2d pointwise(std::int64_t from, std::int64_t to, bool bias) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, 1).bias(bias));
}

/// One kernel per channel; the size stays the same, but for the stride.
nn::Conv2d depthwise(std::int64_t channels, std::int64_t side, std::int64_t step = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(channels, channels, side).stride(step).padding((side - 1) / 2).groups(channels).bias(false));
}

nn::Functional hard_swish() { return nn::Functional(static_cast<Tensor (*)(const Tensor&)>(torch::hardswish)); }
nn::Functional hard_sigmoid() { return nn::Functional(static_cast<Tensor (*)(const Tensor&)>(torch::hardsigmoid)); }

/// The nearest multiple of eight, at least eight and not less than nine tenths.
std::int64_t in_eights(double channels) {
  const auto rounded = std::max<std::int64_t>(8, std::int64_t(channels + 4) / 8 * 8);
  return double(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

/// Weights of channels from their means over the picture.
class Squeeze : public nn::Module {
 public:
  explicit Squeeze(std::int64_t channels)
      : fc(register_module("fc",
                           nn::Sequential(nn::Linear(channels, in_eights(double(channels / 4))), nn::ReLU(),
                                          nn::Linear(in_eights(double(channels / 4)), channels), hard_sigmoid()))) {}
  Tensor forward(const Tensor& x) { return x * fc->forward(x.mean({2, 3})).unsqueeze(2).unsqueeze(3); }

 private:
  nn::Sequential fc;
};

struct BlockShape {
  std::int64_t side, hidden, to;
  bool squeezed, swish;
  std::int64_t step;
};

// MobileNetV3-small until its features have a sixteenth of the picture's side; the last block is in version 3 only.
constexpr std::int64_t stem_channels = 16;
constexpr std::array<BlockShape, 9> block_shapes{{{3, 16, 16, true, false, 2},
                                                  {3, 72, 24, false, false, 2},
                                                  {3, 88, 24, false, false, 1},
                                                  {5, 96, 40, true, true, 2},
                                                  {5, 240, 40, true, true, 1},
                                                  {5, 240, 40, true, true, 1},
                                                  {5, 120, 48, true, true, 1},
                                                  {5, 144, 48, true, true, 1},
                                                  {5, 288, 96, true, true, 1}}};

/// Widens the channels, unless they are as wide already, filters each, and narrows them again.
class Block : public nn::Module {
 public:
  Block(std::int64_t from, const BlockShape& shape)
      : conv(nn::Sequential()), adds_(shape.step == 1 && from == shape.to) {
    const auto activate = [&] { shape.swish ? conv->push_back(hard_swish()) : conv->push_back(nn::ReLU()); };
    const auto squeeze = [&] {
      shape.squeezed ? conv->push_back(Squeeze(shape.hidden)) : conv->push_back(nn::Identity());
    };
    const bool widens = from != shape.hidden;
    if (widens) {
      conv->push_back(pointwise(from, shape.hidden, false));
      conv->push_back(nn::BatchNorm2d(shape.hidden));
      activate();
    }
    conv->push_back(depthwise(shape.hidden, shape.side, shape.step));
    conv->push_back(nn::BatchNorm2d(shape.hidden));
    if (widens) {
      squeeze();
      activate();
    } else {
      activate();
      squeeze();
    }
    conv->push_back(pointwise(shape.hidden, shape.to, false));
    conv->push_back(nn::BatchNorm2d(shape.to));
    register_module("conv", conv);
  }
  Tensor forward(const Tensor& x) { return adds_ ? x + conv->forward(x) : conv->forward(x); }

 private:
  nn::Sequential conv;
  bool adds_;
};

class Stem : public nn::Module {
 public:
  Stem()
      : convolution(
            register_module("0", nn::Conv2d(nn::Conv2dOptions(3, stem_channels, 3).stride(2).padding(1).bias(false)))),
        normalisation(register_module("1", nn::BatchNorm2d(stem_channels))) {}
  Tensor forward(const Tensor& x) { return torch::hardswish(normalisation(convolution(x))); }

 private:
  nn::Conv2d convolution;
  nn::BatchNorm2d normalisation;
};

/// Scales each channel by what all of them are on average.
class Attention : public nn::Module {
 public:
  Attention()
      : fc1(register_module("fc1", pointwise(target_places, target_places, true))),
        fc2(register_module("fc2", pointwise(target_places, target_places, true))) {}
  Tensor forward(const Tensor& x) { return x * fc2(fc1(x.mean({2, 3}, true)).relu()).sigmoid(); }

 private:
  nn::Conv2d fc1, fc2;
};

nn::Sequential projection(std::int64_t channels) {
  return nn::Sequential(pointwise(channels, channels, true), nn::BatchNorm2d(channels));
}

/// How much every place of the search crop is like every place of the target: 64 channels, one per place.
class PlaceCorrelation : public nn::Module {
 public:
  PlaceCorrelation(std::int64_t channels, bool shrinks)
      : attention(register_module("CA_layer", std::make_shared<Attention>())),
        conv_kernel(register_module("conv_kernel", projection(channels))),
        conv_search(register_module("conv_search", projection(channels))) {
    if (!shrinks) return;
    constexpr auto n = target_places;
    conv = register_module(
        "conv", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(n, n, 2).groups(n).bias(false)), nn::BatchNorm2d(n),
                               nn::ReLU6(), pointwise(n, n, true), nn::BatchNorm2d(n)));
  }
  Tensor forward(const Tensor& target, const Tensor& search) {
    const Tensor kernel = conv_kernel->forward(target).flatten(2).transpose(1, 2);
    const Tensor alike = torch::matmul(kernel, conv_search->forward(search).flatten(2));
    const Tensor weighted = attention->forward(alike.reshape({search.size(0), -1, search.size(2), search.size(3)}));
    return conv.is_empty() ? weighted : conv->forward(weighted);
  }

 private:
  std::shared_ptr<Attention> attention;
  nn::Sequential conv_kernel, conv_search, conv{nullptr};
};

/// The inner 4×4 features of the target moved over the search crop, channel by channel.
class WindowCorrelation : public nn::Module {
 public:
  explicit WindowCorrelation(std::int64_t channels)
      : conv_kernel(register_module("conv_kernel", projection(channels))),
        conv_search(register_module("conv_search", projection(channels))) {}
  Tensor forward(const Tensor& target, const Tensor& search) {
    const Tensor kernel = conv_kernel->forward(target.slice(2, 2, 6).slice(3, 2, 6));
    const Tensor place = conv_search->forward(search);
    const auto all = place.size(0) * place.size(1);
    const Tensor moved =
        nn::functional::conv2d(place.reshape({1, all, place.size(2), place.size(3)}), kernel.reshape({all, 1, 4, 4}),
                               nn::functional::Conv2dFuncOptions().padding(1).groups(all));
    return moved.reshape({place.size(0), place.size(1), moved.size(2), moved.size(3)});
  }

 private:
  nn::Sequential conv_kernel, conv_search;
};

constexpr int tower_layers = 6;

nn::Sequential tower_of_two() {
  nn::Sequential tower;
  for (int layer = 0; layer < tower_layers; ++layer) {
    const std::int64_t from = layer == 0 ? target_places : 96;
    tower->push_back(depthwise(from, 3));
    tower->push_back(pointwise(from, 96, false));
    tower->push_back(nn::BatchNorm2d(96));
    tower->push_back(nn::ReLU6());
  }
  return tower;
}

nn::Sequential tower_of_three() {
  nn::Sequential tower;
  for (int layer = 0; layer < tower_layers; ++layer) {
    tower->push_back(depthwise(96, 3));
    tower->push_back(nn::BatchNorm2d(96));
    tower->push_back(nn::ReLU6());
    tower->push_back(pointwise(96, 96, false));
    tower->push_back(nn::BatchNorm2d(96));
  }
  return tower;
}

/// From features to one kind of answer.
struct Branch {
  std::shared_ptr<PlaceCorrelation> places;
  std::shared_ptr<WindowCorrelation> windows{};  // version 3
  nn::Sequential down{nullptr};                  // version 3
  nn::Sequential tower, last;

  Tensor forward(const Tensor& target, const Tensor& search) {
    Tensor alike = places->forward(target, search);
    if (windows) alike = down->forward(torch::cat({alike, windows->forward(target, search)}, 1));
    return last->forward(tower->forward(alike));
  }
};

}  // namespace nano

using namespace nano;

class NanoBackbone : public nn::Module {
 public:
  explicit NanoBackbone(NanoVersion version) : features(nn::Sequential()) {
    features->push_back(Stem());
    std::int64_t from = stem_channels;
    for (std::size_t k = 0; k < block_shapes.size() - (version == NanoVersion::two ? 1 : 0); ++k) {
      features->push_back(Block(from, block_shapes[k]));
      from = block_shapes[k].to;
    }
    register_module("features", features);
  }
  nn::Sequential features;
};

class NanoHead : public nn::Module {
 public:
  explicit NanoHead(NanoVersion version) {
    score = version == NanoVersion::two ? branch_of_two("cls", 2) : branch_of_three("cls", 2);
    distance = version == NanoVersion::two ? branch_of_two("reg", 4) : branch_of_three("reg", 4);
  }
  Branch score, distance;

 private:
  static std::string tower_name(const std::string& kind) { return kind == "reg" ? "bbox" : kind; }

  Branch branch_of_two(const std::string& kind, std::int64_t outputs) {
    return {.places = register_module("corr_pw_" + kind, std::make_shared<PlaceCorrelation>(48, false)),
            .tower = register_module(tower_name(kind) + "_pw_tower", tower_of_two()),
            .last = register_module(tower_name(kind) + "_pred", nn::Sequential(pointwise(96, outputs, true)))};
  }

  Branch branch_of_three(const std::string& kind, std::int64_t outputs) {
    const std::string last = kind == "reg" ? "bbox_pred" : "cls_logits";
    return {.places = register_module("corr_pw_" + kind, std::make_shared<PlaceCorrelation>(96, true)),
            .windows = register_module("corr_dw_" + kind, std::make_shared<WindowCorrelation>(96)),
            .down = register_module("down_" + kind, nn::Sequential(pointwise(96 + target_places, 96, true))),
            .tower = register_module(tower_name(kind) + "_tower", tower_of_three()),
            .last = register_module(last, nn::Sequential(pointwise(96, outputs, true)))};
  }
};

NanoTrack::NanoTrack(NanoVersion version)
    : version_(version),
      backbone_(register_module("backbone", std::make_shared<NanoBackbone>(version))),
      head_(register_module("ban_head", std::make_shared<NanoHead>(version))) {}

Tensor NanoTrack::features(const Tensor& targets) { return backbone_->features->forward(targets); }

NanoAnswer NanoTrack::answer(const Tensor& target_features, const Tensor& searches) {
  const Tensor search = features(searches);
  return {head_->score.forward(target_features, search), head_->distance.forward(target_features, search).exp()};
}

Candidates NanoTrack::candidates(const Tensor& target_features, const Tensor& searches) {
  const NanoAnswer said = answer(target_features, searches);
  const Tensor score = said.score.flatten(2);
  const Tensor distance = said.distance.flatten(2);
  const int side = habits().grid_side;
  const Tensor steps = (torch::arange(side, score.options()) - side / 2) * grid_step;
  const Tensor x = steps.repeat({side});
  const Tensor y = steps.repeat_interleave(side);
  const auto [left, top, right, bottom] =
      std::tuple(distance.select(1, 0), distance.select(1, 1), distance.select(1, 2), distance.select(1, 3));
  const Tensor box = torch::stack({x + (right - left) / 2, y + (bottom - top) / 2, left + right, top + bottom}, 1);
  return {box, score.select(1, 1) - score.select(1, 0)};
}

Habits NanoTrack::habits() const {
  if (version_ == NanoVersion::two)
    return {.shape_penalty = 0.15, .window_share = 0.49, .size_share = 0.385, .grid_side = 16};
  return {.shape_penalty = 0.138, .window_share = 0.455, .size_share = 0.348, .grid_side = 15};
}

void NanoTrack::freeze(int) {
  for (Tensor& parameter : backbone_->parameters()) parameter.set_requires_grad(false);
}

bool NanoTrack::features_stay() const { return all_fixed(backbone_->parameters()); }

bool is_nano_track(const StateDictionary& state, const std::string& source) {
  if (state.contains("ban_head.corr_pw.CA_layer.fc1.weight")) {
    throw BadData(fmt::format("{}: holds NanoTrack 1; versions 2 and 3 are supported", source));
  }
  return state.contains("ban_head.corr_pw_reg.CA_layer.fc1.weight");
}

NanoVersion nano_version(const StateDictionary& state) {
  return state.contains("ban_head.corr_dw_reg.conv_kernel.0.weight") ? NanoVersion::three : NanoVersion::two;
}

}  // namespace unshuffle::pixels
