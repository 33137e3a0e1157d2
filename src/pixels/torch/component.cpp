// The torch component: the network behind unshuffle/pixels/siamese.hpp.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <functional>
#include <map>
#include <sstream>

#include "core/lapack.hpp"
#include "pixels/torch/layers.hpp"
#include "pixels/torch/nano_track.hpp"
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
using tracking::Found;

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
StateDictionary tensors_of(const Finder& module) {
  StateDictionary tensors;
  for (const auto& entry : module.named_parameters()) tensors.emplace(entry.key(), entry.value().detach());
  for (const auto& entry : module.named_buffers()) tensors.emplace(entry.key(), entry.value());
  return tensors;
}

/// Small batches make Adam's steps noisy; predictions and saved weights use the average over about the last 1/(1 -
/// keep) steps, training the current weights.
constexpr double keep = 0.95;

using MakeFinder = std::function<std::shared_ptr<Finder>()>;

/// Parameters whose names begin with one of these learn, all others stay.
void move_only(Finder& finder, const std::vector<std::string>& layers) {
  for (Tensor& parameter : finder.parameters()) parameter.set_requires_grad(false);
  for (const std::string& layer : layers) {
    bool known = false;
    for (auto& entry : finder.named_parameters()) {
      if (entry.key() != layer && !entry.key().starts_with(layer + ".")) continue;
      entry.value().set_requires_grad(true);
      known = true;
    }
    if (known) continue;
    std::vector<std::string> names;
    for (const auto& entry : finder.named_children()) names.push_back(entry.key());
    throw InvalidInput(
        fmt::format("layers = {}: no parameter of {} has a name that begins so; {} or what is in them "
                    "was expected",
                    layer, finder.model_name(), fmt::join(names, ", ")));
  }
}

/// All computation holds a OneThread: torch's calls to OpenBLAS then sum in the same order on any machine, and in
/// resumed as in uninterrupted training.
class Network : public SiameseNetwork {
 public:
  Network(const MakeFinder& make, const Learning& learning)
      : module_(make()), average_(make()), decoding_(learning.decoding) {
    if (learning.frozen < 0 || learning.frozen > 5) {
      throw InvalidInput(fmt::format("frozen = {} must be from 0 to 5", learning.frozen));
    }
    if (learning.layers.empty()) {
      module_->freeze(learning.frozen);
    } else {
      move_only(*module_, learning.layers);
    }
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
      if (own.contains(name)) continue;
      // The published files of NanoTrack have a layer that the network skips.
      if (!name.starts_with("neck.") || module_->model_name() != "NanoTrack") {
        throw BadData(fmt::format("{}: {} is not a tensor of {}", source, name, module_->model_name()));
      }
      unused_.emplace(name, tensor);
    }
    start_average();
  }

  [[nodiscard]] std::string state_dictionary() const override {
    StateDictionary state = tensors_of(*average_);
    state.insert(unused_.begin(), unused_.end());
    return write_state(state);
  }

  [[nodiscard]] int search_side() const override { return module_->search_side(); }
  void decode(Decoding decoding) override { decoding_ = decoding; }

  void measure_statistics(const std::vector<Sight>& sights) override {
    const lapack::OneThread one_thread;
    const torch::NoGradGuard no_gradient;
    std::vector<torch::nn::BatchNorm2dImpl*> layers;
    for (const auto& layer : module_->modules(false)) {
      if (auto* normalisation = layer->as<torch::nn::BatchNorm2d>()) layers.push_back(normalisation);
    }
    for (auto* layer : layers) {
      layer->reset_running_stats();
      layer->options.momentum(c10::nullopt);  // The plain average over both kinds of crops.
      layer->train();
    }
    (void)module_->candidates(module_->features(stacked(sights, target_side, target_of)), searches(sights));
    for (auto* layer : layers) {
      layer->options.momentum(0.1);
      layer->eval();
    }
    start_average();
  }

  [[nodiscard]] std::vector<Found> predict(const std::vector<Sight>& sights) override {
    const lapack::OneThread one_thread;
    const torch::NoGradGuard no_gradient;
    return to_found(look(*average_, sights));
  }

  Lesson learn(const std::vector<Sight>& sights, const Teaching& teaching) override {
    const lapack::OneThread one_thread;
    const Seen seen = look(*module_, sights);
    const Tensor loss = loss_of(seen.boxes, teaching);
    if (loss.requires_grad()) loss.backward();
    return {to_found(seen), loss.item<double>()};
  }

  Lesson judge(const std::vector<Sight>& sights, const Teaching& teaching) override {
    const lapack::OneThread one_thread;
    const torch::NoGradGuard no_gradient;
    const Seen seen = look(*average_, sights);
    return {to_found(seen), loss_of(seen.boxes, teaching).item<double>()};
  }

  void step(double learning_rate) override {
    for (auto& group : adam_->param_groups()) {
      static_cast<torch::optim::AdamOptions&>(group.options()).lr(module_->rate_of(group.params()[0], learning_rate));
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
  void start_average() {
    follow(1);
    known_.clear();
  }

  /// Of the targets. Those of a track are computed once, unless learning changes them.
  [[nodiscard]] Tensor features(Finder& network, const std::vector<Sight>& sights) {
    if (!module_->features_stay()) return network.features(stacked(sights, target_side, target_of));
    std::vector<Sight> fresh;
    for (const Sight& sight : sights) {
      if (!known_.contains(sight.target)) fresh.push_back({sight.target, {}, {}});
    }
    std::map<std::shared_ptr<const Crop>, Tensor> used;
    const Tensor computed = fresh.empty() ? Tensor() : network.features(stacked(fresh, target_side, target_of));
    for (std::size_t at = 0; at < fresh.size(); ++at) known_[fresh[at].target] = computed[std::int64_t(at)];
    std::vector<Tensor> rows;
    for (const Sight& sight : sights) {
      rows.push_back(known_.at(sight.target));
      used[sight.target] = rows.back();
    }
    known_ = std::move(used);
    return torch::stack(rows);
  }

  [[nodiscard]] static const Crop& target_of(const Sight& sight) { return *sight.target; }
  [[nodiscard]] Tensor searches(const std::vector<Sight>& sights) const {
    return stacked(sights, search_side(), [](const Sight& sight) -> const Crop& { return sight.search; });
  }

  [[nodiscard]] static Tensor loss_of(const Tensor& boxes, const Teaching& teaching) {
    const Tensor cost = box_costs(boxes, to_tensor(teaching.detections), teaching.diagonal);
    if (!teaching.known.empty()) return cost_of_links(cost, teaching.known);
    const auto pairs = double(std::min(std::size_t(boxes.size(0)), teaching.detections.size()));
    return pairs * transport_cost(cost, marginals_for(teaching, boxes.size(0)));
  }

  [[nodiscard]] static Tensor cost_of_links(const Tensor& cost, const std::vector<Index>& links) {
    Tensor sum = 0 * cost.sum();
    for (std::size_t track = 0; track < links.size(); ++track) {
      if (links[track] >= 0) sum = sum + cost[links[track]][std::int64_t(track)];
    }
    return sum;
  }

  [[nodiscard]] static transport::SolverOptions marginals_for(const Teaching& teaching, std::int64_t tracks) {
    const LinkOptions& links = teaching.links;
    auto options = tracking::relaxed_marginals(links.epsilon, links.unmatched);
    if (links.rho > 0) {
      options.rows = transport::Ball{.spread = double(teaching.detections.size()) * links.rho};
      options.columns = transport::Ball{.spread = double(tracks) * links.rho};
    }
    return options;
  }

  struct Seen {
    Tensor boxes;   ///< n×4.
    Tensor scores;  ///< n×1.
  };

  [[nodiscard]] static std::vector<Found> to_found(const Seen& seen) {
    const std::vector<Box> boxes = to_boxes(seen.boxes);
    std::vector<Found> found;
    for (std::size_t at = 0; at < boxes.size(); ++at) {
      found.push_back({boxes[at], seen.scores[std::int64_t(at)].item<double>()});
    }
    return found;
  }

  /// Where the targets are.
  [[nodiscard]] Seen look(Finder& network, const std::vector<Sight>& sights) {
    std::vector<Box> boxes;
    for (const Sight& sight : sights) boxes.push_back(sight.last);
    const Tensor last = to_tensor(boxes);
    const Habits habits = network.habits();
    const Candidates candidates = network.candidates(features(network, sights), searches(sights));
    const Choice choice = choose(candidates, last, habits, decoding_);
    return {chosen_boxes(candidates, choice, last, habits), choice.score};
  }

  std::shared_ptr<Finder> module_;
  std::shared_ptr<Finder> average_;
  std::unique_ptr<torch::optim::Adam> adam_;
  Decoding decoding_;
  StateDictionary unused_;                               ///< What the file has beside, to be written again.
  std::map<std::shared_ptr<const Crop>, Tensor> known_;  ///< Features of the targets of the last frame.
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
  using namespace unshuffle::pixels;
  torch::manual_seed(shape.seed);
  const auto make = [&] {
    auto finder = std::make_shared<SiamRpn>(shape.channels);
    finder->start_undecided();
    return finder;
  };
  return std::make_unique<Network>(make, shape.learning).release();
}

extern "C" UNSHUFFLE_EXPORT unshuffle::pixels::SiameseNetwork* unshuffle_load_network(
    const std::string& content, const std::string& source, const unshuffle::pixels::Learning& learning) {
  using namespace unshuffle::pixels;
  const StateDictionary state = read_state(content, source);
  const auto make = [&]() -> std::shared_ptr<Finder> {
    if (is_nano_track(state, source)) return std::make_shared<NanoTrack>(nano_version(state));
    return std::make_shared<SiamRpn>(channels_of(state, source));
  };
  auto network = std::make_unique<Network>(make, learning);
  network->load(state, source);
  return network.release();
}
