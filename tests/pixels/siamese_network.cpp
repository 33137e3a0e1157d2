// The network and its layers: against Python torch, against finite differences, and back from files.
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "pixels/slopes.hpp"
#include "pixels/torch/layers.hpp"
#include "pixels/torch/siam_rpn.hpp"
#include "pixels/torch/state_file.hpp"
#include "support/complaint.hpp"
#include "support/test_data.hpp"
#include "tracking/transport_loss.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

extern "C" unshuffle::pixels::SiameseNetwork* unshuffle_make_network(const unshuffle::pixels::SiameseShape& shape);
extern "C" unshuffle::pixels::SiameseNetwork* unshuffle_load_network(const std::string& content,
                                                                     const std::string& source,
                                                                     const unshuffle::pixels::Learning& learning);

namespace unshuffle::pixels {
namespace {

using torch::Tensor;

const std::string weights_file = test_data("siamese.pt").string();
const Channels narrow{2, 4, 6, 6, 4, 4};

/// What make_siamese.py shows to its network.
Crop wave(int side, double across, double down) {
  Crop crop{side, {}};
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        crop.values.push_back(float(127.5 + 100 * std::sin(across * x + down * y + channel)));
      }
    }
  }
  return crop;
}

Sight wave_sight(const tracking::Box& last = {100, 50, 40, 90}, double across = 0.07) {
  return {std::make_shared<Crop>(wave(target_side, 0.1, 0.2)), wave(siam_rpn_search_side, across, 0.11), last};
}

Tensor tensor_of(const Crop& crop) {
  return torch::from_blob(const_cast<float*>(crop.values.data()), {1, 3, crop.side, crop.side}).clone();
}

std::unique_ptr<SiameseNetwork> loaded(const std::string& content, int frozen = 0) {
  return std::unique_ptr<SiameseNetwork>(unshuffle_load_network(content, "w.pt", {.frozen = frozen}));
}

std::unique_ptr<SiameseNetwork> fresh(int frozen = 3) {
  return std::unique_ptr<SiameseNetwork>(
      unshuffle_make_network({.channels = narrow, .learning = {.frozen = frozen}, .seed = 2}));
}

std::shared_ptr<SiamRpn> oracle_network() {
  auto network = std::make_shared<SiamRpn>(narrow);
  const torch::NoGradGuard plain_copies;
  const StateDictionary state = read_state(read_file(weights_file), weights_file);
  for (const auto& entry : network->named_parameters()) entry.value().copy_(state.at(entry.key()));
  for (const auto& entry : network->named_buffers()) entry.value().copy_(state.at(entry.key()));
  network->eval();
  return network;
}

Proposals propose(SiamRpn& network, const Tensor& targets, const Tensor& searches) {
  return network.propose(network.features(targets), searches);
}

TEST(SiamRpn, the_published_width_has_the_published_number_of_parameters) {
  std::int64_t count = 0;
  for (const Tensor& parameter : SiamRpn(published_channels).parameters()) count += parameter.numel();
  EXPECT_NEAR(double(count), 22.6e6, 0.05e6);
}

TEST(SiamRpn, answers_as_python_torch_does_with_the_weights_python_torch_saved) {
  const auto oracle = nlohmann::json::parse(std::ifstream(test_data("siamese.json")));
  const torch::NoGradGuard no_gradient;
  const Sight sight = wave_sight();
  const Proposals proposals = propose(*oracle_network(), tensor_of(*sight.target), tensor_of(sight.search));
  // coordinate, anchor, y, x as the script has them
  const int chosen[4][4] = {{0, 0, 0, 0}, {1, 2, 9, 9}, {2, 3, 4, 17}, {3, 4, 18, 5}};
  for (std::size_t k = 0; k < 4; ++k) {
    const auto& [coordinate, anchor, y, x] = chosen[k];
    const int place = anchor * grid_side * grid_side + y * grid_side + x;
    EXPECT_NEAR(proposals.delta[0][coordinate][place].item<double>(), oracle["delta"][k].get<double>(), 1e-4);
  }
  EXPECT_NEAR(proposals.delta.sum().item<double>(), oracle["delta_sum"].get<double>(), 0.02);
  EXPECT_NEAR(proposals.logit.sigmoid().sum().item<double>(), oracle["foreground_sum"].get<double>(), 0.02);
  const auto box = loaded(read_file(weights_file))->predict({sight})[0].box;
  EXPECT_NEAR(box.left, oracle["box"][0].get<double>(), 1e-2);
  EXPECT_NEAR(box.top, oracle["box"][1].get<double>(), 1e-2);
  EXPECT_NEAR(box.width, oracle["box"][2].get<double>(), 1e-2);
  EXPECT_NEAR(box.height, oracle["box"][3].get<double>(), 1e-2);
}

TEST(SiamRpn, targets_in_one_batch_do_not_see_each_other) {
  const auto network = loaded(read_file(weights_file));
  const Sight other = wave_sight({10, 20, 30, 60}, 0.05);
  const auto both = network->predict({wave_sight(), other});
  const auto alone = network->predict({other})[0].box;
  EXPECT_NEAR(both[1].box.left, alone.left, 1e-3);
  EXPECT_NEAR(both[1].box.height, alone.height, 1e-3);
}

TEST(SiamRpn, the_middle_anchor_lies_in_the_middle) {
  const Tensor grid = anchors();
  EXPECT_EQ(grid[9 * grid_side + 9][0].item<double>(), 0);
  EXPECT_EQ(grid[9 * grid_side + 9][1].item<double>(), 0);
  EXPECT_EQ(grid[0][0].item<double>(), -72);
  EXPECT_EQ(grid[places - 1][3].item<double>(), 96);
}

TEST(SiamRpn, a_fresh_network_leaves_boxes_about_where_they_are) {
  const auto network = fresh();
  network->measure_statistics({wave_sight()});
  const tracking::Box last{100, 50, 40, 90};
  EXPECT_GT(tracking::overlap(network->predict({wave_sight(last)})[0].box, last), 0.9);
}

/// Largest difference between the gradient of f and its central differences, in units of the largest slope.
double gradient_error(const std::function<Tensor(const Tensor&)>& f, const Tensor& start, double step) {
  const Tensor x = start.clone().set_requires_grad(true);
  f(x).backward();
  const Tensor numeric = torch::zeros_like(x);
  const torch::NoGradGuard no_gradient;
  for (std::int64_t at = 0; at < x.numel(); ++at) {
    const auto shifted = [&](double by) {
      Tensor y = start.clone();
      y.view(-1)[at] += by;
      return f(y).item<double>();
    };
    numeric.view(-1)[at] = (shifted(step) - shifted(-step)) / (2 * step);
  }
  return ((x.grad() - numeric).abs().max() / numeric.abs().max()).item<double>();
}

const Tensor detections = torch::tensor(
    {{101., 52., 41., 88.}, {180., 60., 38., 92.}, {300., 40., 45., 99.}, {15., 200., 30., 66.}}, torch::kFloat64);
const Tensor predictions =
    torch::tensor({{104., 55., 38.5, 90.}, {172., 66., 41., 87.}, {290., 37., 44., 95.}}, torch::kFloat64);

TEST(Layers, gradient_of_box_costs_agrees_with_finite_differences) {
  const Tensor weights = torch::rand({4, 3}, torch::kFloat64);
  const auto f = [&](const Tensor& boxes) { return (box_costs(boxes, detections, 800) * weights).sum(); };
  EXPECT_LT(gradient_error(f, predictions, 1e-4), 1e-6);
}

TEST(Layers, gradient_of_transport_agrees_with_finite_differences_for_both_kinds_of_marginals) {
  const Tensor cost = box_costs(predictions, detections, 800);
  for (const double unmatched : {0.0, 0.2}) {
    auto options = tracking::relaxed_marginals(0.05, unmatched);
    options.tolerance = 1e-11;
    EXPECT_LT(gradient_error([&](const Tensor& c) { return transport_cost(c, options); }, cost, 1e-5), 1e-4)
        << unmatched;
  }
}

TEST(Layers, gradient_of_a_frames_loss_in_the_networks_weights_agrees_with_finite_differences) {
  const auto network = oracle_network();
  network->to(torch::kFloat64);
  const Sight first = wave_sight();
  const Sight second = wave_sight({170, 60, 36, 80}, 0.05);
  const Tensor targets = torch::cat({tensor_of(*first.target), tensor_of(*second.target)}).to(torch::kFloat64);
  const Tensor searches = torch::cat({tensor_of(first.search), tensor_of(second.search)}).to(torch::kFloat64);
  const Tensor last = torch::tensor({{100., 50., 40., 90.}, {170., 60., 36., 80.}}, torch::kFloat64);
  auto options = tracking::relaxed_marginals(0.05, 0.2);
  options.tolerance = 1e-11;
  const auto candidates = [&] { return network->candidates(network->features(targets), searches); };
  const Choice choice = choose(candidates(), last, network->habits(), Decoding::best);
  const auto loss = [&] {
    const Tensor boxes = chosen_boxes(candidates(), choice, last, network->habits());
    return transport_cost(box_costs(boxes, detections, 800), options);
  };
  expect_true_slopes(*network,
                     {"regress_adjust.weight", "conv_r1.weight", "conv_r2.bias", "featureExtract.14.weight",
                      "featureExtract.11.bias", "featureExtract.9.weight"},
                     loss);
}

TEST(Learning, lowers_the_loss_leaves_frozen_layers_and_statistics_and_goes_on_from_a_checkpoint_bit_for_bit) {
  const std::vector<Sight> sights{wave_sight(), wave_sight({170, 60, 36, 80}, 0.05)};
  const std::vector<tracking::Box> seen{{108, 52, 40, 92}, {176, 63, 37, 80}};
  const auto network = fresh(3);
  network->measure_statistics(sights);
  const StateDictionary before = read_state(network->state_dictionary(), "before");
  const auto loss_and_step = [&](SiameseNetwork& learner) {
    const double loss = learner.learn(sights, {.detections = seen, .diagonal = 800}).loss;
    learner.step(3e-3);
    return loss;
  };
  const double first = loss_and_step(*network);
  for (int step = 0; step < 10; ++step) (void)loss_and_step(*network);
  const std::string checkpoint = network->checkpoint();
  const double last = loss_and_step(*network);
  EXPECT_LT(last, first);
  const StateDictionary after = read_state(network->state_dictionary(), "after");
  for (const auto& [name, tensor] : before) {
    const bool kept = name.ends_with("running_mean") || name.ends_with("running_var") ||
                      name.ends_with("num_batches_tracked") || name.starts_with("featureExtract.0.") ||
                      name.starts_with("featureExtract.4.") || name.starts_with("featureExtract.8.") ||
                      name.starts_with("featureExtract.9.");
    EXPECT_TRUE(!kept || tensor.equal(after.at(name))) << name;
  }
  EXPECT_FALSE(before.at("conv_r1.weight").equal(after.at("conv_r1.weight")));
  EXPECT_FALSE(before.at("featureExtract.11.weight").equal(after.at("featureExtract.11.weight")));

  const auto other = fresh(3);
  other->restore(checkpoint, "c");
  EXPECT_EQ(loss_and_step(*other), last);
  EXPECT_EQ(other->state_dictionary(), network->state_dictionary());
  EXPECT_THROW(other->restore("rubbish", "c"), BadData);
}

TEST(StateFile, what_is_written_reads_back_and_says_what_is_wrong) {
  const std::string content = read_file(weights_file);
  const auto network = loaded(content);
  const std::string written = network->state_dictionary();
  EXPECT_EQ(loaded(written)->predict({wave_sight()})[0].box.left, network->predict({wave_sight()})[0].box.left);

  const auto changed = [&](const std::function<void(StateDictionary&)>& change) {
    StateDictionary state = read_state(content, "w.pt");
    change(state);
    return write_state(state);
  };
  const auto says = [](const std::string& bytes, const std::string& words) {
    EXPECT_NE(complaint([&] { (void)loaded(bytes); }).find(words), std::string::npos)
        << complaint([&] { (void)loaded(bytes); });
  };
  says("not an archive", "w.pt: is not an archive of torch 1.6 or later");
  says(content.substr(0, content.size() / 2), "w.pt: cannot be read");
  says(changed([](auto& state) { state.erase("conv_r1.weight"); }), "w.pt: has no tensor conv_r1.weight");
  says(changed([](auto& state) { state["conv_r1.bias"] = torch::zeros({3}); }),
       "w.pt: conv_r1.bias has the shape [3]; [80] was expected");
  says(changed([](auto& state) { state["conv_r1.bias"].fill_(NAN); }), "conv_r1.bias holds a value that is not finite");
  says(changed([](auto& state) { state["extra"] = torch::zeros({1}); }), "extra is not a tensor of SiamRPN");
  // Files from before torch 0.4.1 count no batches.
  EXPECT_NO_THROW((void)loaded(changed([](auto& state) {
    std::erase_if(state, [](const auto& entry) { return entry.first.ends_with("num_batches_tracked"); });
  })));
}

/// The archive with its records changed by name.
std::string repacked(const std::string& content, const std::function<void(const std::string&, std::string&)>& change) {
  std::istringstream stream(content);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  std::string made;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t size) {
    made.append(static_cast<const char*>(bytes), size);
    return size;
  });
  for (const std::string& name : reader.getAllRecords()) {
    if (name == "version" || name.starts_with(".data")) continue;  // the writer has its own
    const auto [data, size] = reader.getRecord(name);
    std::string bytes(static_cast<const char*>(data.get()), size);
    change(name, bytes);
    writer.writeRecord(name, bytes.data(), bytes.size());
  }
  writer.writeEndOfFile();
  return made;
}

TEST(StateFile, a_tensor_larger_than_its_record_is_not_read) {
  const std::string content = read_file(weights_file);
  EXPECT_NO_THROW((void)read_state(repacked(content, [](const auto&, auto&) {}), "w.pt"));
  for (const std::size_t kept : {std::size_t{0}, std::size_t{4}}) {
    const std::string shorter = repacked(content, [&](const std::string& name, std::string& bytes) {
      if (name.starts_with("data/")) bytes.resize(std::min(bytes.size(), kept));
    });
    EXPECT_NE(complaint([&] { (void)read_state(shorter, "w.pt"); }).find("larger than the numbers there are"),
              std::string::npos);
  }
}

TEST(StateFile, values_nested_too_deep_are_refused) {
  const std::string deep = repacked(read_file(weights_file), [](const std::string& name, std::string& bytes) {
    if (name == "data.pkl") bytes = "\x80\x02)" + std::string(300000, '\x85') + ".";
  });
  EXPECT_NE(complaint([&] { (void)read_state(deep, "w.pt"); }).find("nested too deep"), std::string::npos);
}

}  // namespace
}  // namespace unshuffle::pixels
