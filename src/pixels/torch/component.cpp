// The torch component: the network behind unshuffle/pixels/siamese.hpp.
#include <fmt/ostream.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <sstream>

#include "core/lapack.hpp"
#include "pixels/torch/layers.hpp"
#include "pixels/torch/siam_rpn.hpp"
#include "pixels/torch/state_file.hpp"
#include "tracking/transport_loss.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::pixels {
namespace {

using torch::Tensor;
using tracking::Box;

Tensor to_tensor(const std::vector<Box>& boxes) {
  Tensor result = torch::empty({std::int64_t(boxes.size()), 4});
  auto values = result.accessor<float, 2>();
  for (std::size_t at = 0; at < boxes.size(); ++at) {
    const Box& box = boxes[at];
    const std::array<double, 4> row{box.left, box.top, box.width, box.height};
    for (std::size_t k = 0; k < 4; ++k) values[std::int64_t(at)][std::int64_t(k)] = float(row[k]);
  }
  return result;
}

std::vector<Box> to_boxes(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(torch::kFloat64).contiguous();
  const auto values = plain.accessor<double, 2>();
  std::vector<Box> boxes;
  for (std::int64_t at = 0; at < plain.size(0); ++at) {
    boxes.push_back({values[at][0], values[at][1], values[at][2], values[at][3]});
  }
  return boxes;
}

/// Crops of one side, stacked.
template <class Pick>
Tensor stacked(const std::vector<Sight>& sights, int side, Pick pick) {
  Tensor result = torch::empty({std::int64_t(sights.size()), 3, side, side});
  float* to = result.data_ptr<float>();
  for (const Sight& sight : sights) to = std::copy(pick(sight).values.begin(), pick(sight).values.end(), to);
  return result;
}

/// Parameters and statistics by name; writing to a tensor writes to the module.
StateDictionary tensors_of(const SiamRpn& module) {
  StateDictionary tensors;
  for (const auto& entry : module.named_parameters()) tensors.emplace(entry.key(), entry.value().detach());
  for (const auto& entry : module.named_buffers()) tensors.emplace(entry.key(), entry.value());
  return tensors;
}

/// Adam moves every weight by the same amount, whether its gradient is signal or noise. With thousands of weights
/// trained on one video, noise adds up: with steps as large as those of the biases the loss falls on the training
/// frames and rises on all others.
constexpr double share_of_weights = 0.01;

double rate_of(const Tensor& parameter, double learning_rate) {
  if (parameter.dim() == 1) return learning_rate;
  const auto inputs = double(parameter.numel() / parameter.size(0));
  return share_of_weights * learning_rate / inputs;
}

/// Small batches make Adam's steps noisy; predictions and saved weights use the average over about the last 1/(1 -
/// keep) steps, training the current weights.
constexpr double keep = 0.95;

/// All computation holds a OneThread: torch's calls to OpenBLAS then sum in the same order on any machine, and in
/// resumed as in uninterrupted training.
class Network : public SiameseNetwork {
 public:
  Network(const Channels& channels, int frozen)
      : module_(std::make_shared<SiamRpn>(channels)), average_(std::make_shared<SiamRpn>(channels)) {
    if (frozen < 0 || frozen > 5) throw InvalidInput(fmt::format("frozen = {} must be from 0 to 5", frozen));
    module_->freeze(frozen);
    // Single frames are too small a sample for normalisation, so the running statistics stay fixed.
    module_->eval();
    average_->eval();
    start_average();
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const Tensor& parameter : module_->parameters()) {
      if (parameter.requires_grad()) groups.emplace_back(std::vector{parameter});
    }
    adam_ = std::make_unique<torch::optim::Adam>(groups);
  }

  void start_undecided() {
    module_->start_undecided();
    start_average();
  }

  /// Copies every tensor of the dictionary to the parameter or statistic of its name.
  void load(const StateDictionary& state, const std::string& source) {
    const torch::NoGradGuard plain_copies;
    StateDictionary own = tensors_of(*module_);
    for (auto& [name, tensor] : own) {
      const auto found = state.find(name);
      // A counter that no prediction uses; files older than torch 0.4.1 do not have it.
      if (found == state.end() && name.ends_with(".num_batches_tracked")) continue;
      if (found == state.end()) throw BadData(fmt::format("{}: has no tensor {}", source, name));
      if (found->second.sizes() != tensor.sizes()) {
        throw BadData(fmt::format("{}: {} has the shape {}; {} was expected", source, name,
                                  fmt::streamed(found->second.sizes()), fmt::streamed(tensor.sizes())));
      }
      if (tensor.is_floating_point() && !found->second.isfinite().all().item<bool>()) {
        throw BadData(fmt::format("{}: {} holds a value that is not finite", source, name));
      }
      tensor.copy_(found->second);
    }
    for (const auto& [name, tensor] : state) {
      if (!own.contains(name)) throw BadData(fmt::format("{}: {} is not a tensor of SiamRPN", source, name));
    }
    start_average();
  }

  [[nodiscard]] std::string state_dictionary() const override { return write_state(tensors_of(*average_)); }

  void measure_statistics(const std::vector<Sight>& sights) override {
    const lapack::OneThread one_thread;
    const torch::NoGradGuard no_gradient;
    std::vector<torch::nn::BatchNorm2dImpl*> layers;
    for (const auto& layer : module_->featureExtract->children()) {
      if (auto* normalisation = layer->as<torch::nn::BatchNorm2d>()) layers.push_back(normalisation);
    }
    for (auto* layer : layers) {
      layer->reset_running_stats();
      layer->options.momentum(c10::nullopt);  // The plain average over both kinds of crops.
      layer->train();
    }
    (void)propose(*module_, sights);
    for (auto* layer : layers) {
      layer->options.momentum(0.1);
      layer->eval();
    }
    start_average();
  }

  [[nodiscard]] std::vector<Box> predict(const std::vector<Sight>& sights) override {
    const lapack::OneThread one_thread;
    const torch::NoGradGuard no_gradient;
    return to_boxes(look(*average_, sights));
  }

  Lesson learn(const std::vector<Sight>& sights, const std::vector<Box>& detections, double diagonal,
               const LinkOptions& options) override {
    const lapack::OneThread one_thread;
    const Tensor boxes = look(*module_, sights);
    const Tensor loss = loss_of(boxes, detections, diagonal, options);
    loss.backward();
    return {to_boxes(boxes), loss.item<double>()};
  }

  Lesson judge(const std::vector<Sight>& sights, const std::vector<Box>& detections, double diagonal,
               const LinkOptions& options) override {
    const lapack::OneThread one_thread;
    const torch::NoGradGuard no_gradient;
    const Tensor boxes = look(*average_, sights);
    return {to_boxes(boxes), loss_of(boxes, detections, diagonal, options).item<double>()};
  }

  void step(double learning_rate) override {
    for (auto& group : adam_->param_groups()) {
      static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate_of(group.params()[0], learning_rate));
    }
    adam_->step();
    adam_->zero_grad();
    follow(1 - keep);
  }

  [[nodiscard]] std::string checkpoint() const override {
    torch::serialize::OutputArchive archive, weights, average, moments;
    module_->save(weights);
    average_->save(average);
    adam_->save(moments);
    archive.write("weights", weights);
    archive.write("average", average);
    archive.write("adam", moments);
    std::ostringstream stream;
    archive.save_to(stream);
    return stream.str();
  }

  void restore(const std::string& content, const std::string& source) override {
    try {
      std::istringstream stream(content);
      torch::serialize::InputArchive archive, weights, average, moments;
      archive.load_from(stream);
      archive.read("weights", weights);
      archive.read("average", average);
      archive.read("adam", moments);
      module_->load(weights);
      average_->load(average);
      adam_->load(moments);
    } catch (const c10::Error& error) {
      throw BadData(fmt::format("{}: cannot be read: {}", source, error.what_without_backtrace()));
    }
  }

  [[nodiscard]] std::int64_t parameter_count() const override {
    std::int64_t count = 0;
    for (const Tensor& parameter : module_->parameters()) count += parameter.numel();
    return count;
  }

 private:
  /// Moves the average a share of the way to where learning is.
  void follow(double share) {
    const torch::NoGradGuard plain_arithmetic;
    StateDictionary average = tensors_of(*average_);
    for (const auto& [name, tensor] : tensors_of(*module_)) {
      Tensor& mean = average.at(name);
      if (mean.is_floating_point()) {
        mean.lerp_(tensor, share);
      } else {
        mean.copy_(tensor);
      }
    }
  }
  void start_average() { follow(1); }

  [[nodiscard]] static Proposals propose(SiamRpn& network, const std::vector<Sight>& sights) {
    const auto target = [](const Sight& sight) -> const Crop& { return *sight.target; };
    const auto search = [](const Sight& sight) -> const Crop& { return sight.search; };
    return network.forward(stacked(sights, target_side, target), stacked(sights, search_side, search));
  }

  [[nodiscard]] static Tensor loss_of(const Tensor& boxes, const std::vector<Box>& detections, double diagonal,
                                      const LinkOptions& options) {
    const Tensor cost = box_costs(boxes, to_tensor(detections), diagonal);
    const auto pairs = double(std::min(std::size_t(boxes.size(0)), detections.size()));
    return pairs * transport_cost(cost, tracking::relaxed_marginals(options.epsilon, options.unmatched));
  }

  /// Where the targets are, as n×4 numbers.
  [[nodiscard]] static Tensor look(SiamRpn& network, const std::vector<Sight>& sights) {
    std::vector<Box> boxes;
    for (const Sight& sight : sights) boxes.push_back(sight.last);
    const Tensor last = to_tensor(boxes);
    const Proposals proposals = propose(network, sights);
    return chosen_boxes(proposals, choose(proposals, last), last);
  }

  std::shared_ptr<SiamRpn> module_;
  std::shared_ptr<SiamRpn> average_;
  std::unique_ptr<torch::optim::Adam> adam_;
};

/// Channels as the tensors of a dictionary have them.
Channels channels_of(const StateDictionary& state, const std::string& source) {
  constexpr std::array<const char*, 6> names{"featureExtract.0.bias",  "featureExtract.4.bias",
                                             "featureExtract.8.bias",  "featureExtract.11.bias",
                                             "featureExtract.14.bias", "conv_r2.bias"};
  Channels channels{};
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto found = state.find(names[k]);
    if (found == state.end()) throw BadData(fmt::format("{}: has no tensor {}", source, names[k]));
    channels[k] = found->second.numel();
    if (channels[k] < 1) throw BadData(fmt::format("{}: {} is empty", source, names[k]));
  }
  return channels;
}

}  // namespace
}  // namespace unshuffle::pixels

extern "C" UNSHUFFLE_EXPORT const char* unshuffle_component_version() { return unshuffle::version; }

extern "C" UNSHUFFLE_EXPORT unshuffle::pixels::SiameseNetwork* unshuffle_make_network(
    const unshuffle::pixels::SiameseShape& shape) {
  torch::manual_seed(shape.seed);
  auto network = std::make_unique<unshuffle::pixels::Network>(shape.channels, shape.frozen);
  network->start_undecided();
  return network.release();
}

extern "C" UNSHUFFLE_EXPORT unshuffle::pixels::SiameseNetwork* unshuffle_load_network(const std::string& content,
                                                                                      const std::string& source,
                                                                                      int frozen) {
  using namespace unshuffle::pixels;
  const StateDictionary state = read_state(content, source);
  auto network = std::make_unique<Network>(channels_of(state, source), frozen);
  network->load(state, source);
  return network.release();
}
