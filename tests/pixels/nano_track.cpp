// NanoTrack: against the published ONNX files, against finite differences, and as a network that learns.
#include "pixels/torch/nano_track.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>

#include "pixels/slopes.hpp"
#include "pixels/torch/layers.hpp"
#include "support/complaint.hpp"
#include "support/test_data.hpp"
#include "tracking/transport_loss.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/npy.hpp"

extern "C" unshuffle::pixels::SiameseNetwork* unshuffle_load_network(const std::string& content,
                                                                     const std::string& source,
                                                                     const unshuffle::pixels::Learning& learning);

namespace unshuffle::pixels {
namespace {

using torch::Tensor;

/// What make_nanotrack.py shows to the published networks.
Tensor test_crop(int side, int pair, double phase) {
  Tensor crop = torch::empty({1, 3, side, side});
  auto values = crop.accessor<float, 4>();
  const int middle = side / 2 + pair % 11 - 5;
  const int half = 12 + pair % 17;
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        double value = 127.5 + 60 * std::sin((0.03 + 0.002 * pair) * x + 0.05 * y + channel + phase) +
                       40 * std::sin(0.11 * x - (0.02 + 0.001 * pair) * y + 2 * channel);
        const bool inside = y >= middle - 2 * half && y < middle + 2 * half && x >= middle - half && x < middle + half;
        if (inside) value += 25;
        values[0][channel][y][x] = float(std::floor(std::clamp(value, 0.0, 255.0) + 0.5));
      }
    }
  }
  return crop;
}

std::string published(int version) {
  return test_data("../../../shared/data/mot/weights/pretrained_nanotrackv" + std::to_string(version) + ".pth")
      .string();
}

StateDictionary tensors_of(const torch::nn::Module& module) {
  StateDictionary tensors;
  for (const auto& entry : module.named_parameters()) tensors.emplace(entry.key(), entry.value().detach());
  for (const auto& entry : module.named_buffers()) tensors.emplace(entry.key(), entry.value());
  return tensors;
}

class Published : public testing::TestWithParam<int> {};

TEST_P(Published, weights_answer_as_the_published_onnx_files_do) {
  const int version = GetParam();
  if (!std::filesystem::exists(published(version))) GTEST_SKIP() << "no ../shared/data/mot/weights";
  const torch::NoGradGuard no_gradient;
  const StateDictionary state = read_state(read_file(published(version)), "w.pth");
  ASSERT_TRUE(is_nano_track(state, "w.pth"));
  NanoTrack network(nano_version(state));
  for (auto& [name, tensor] : tensors_of(network)) tensor.copy_(state.at(name));
  network.eval();
  const Table stored = read_npy(test_data("nanotrack_v" + std::to_string(version) + ".npy").string());
  constexpr int pairs = 100, step = 37;
  ASSERT_EQ(stored.rows, pairs);
  double furthest = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    const NanoAnswer said = network.answer(network.features(test_crop(127, pair, 0)), test_crop(255, pair, 0.3));
    const Tensor all = torch::cat({said.score.flatten(), said.distance.flatten()});
    for (std::size_t k = 0; k < stored.columns.size(); ++k) {
      const double wanted = stored.columns[k].numbers[std::size_t(pair)];
      const double is = all[pair % step + std::int64_t(k) * step].item<double>();
      furthest = std::max(furthest, std::abs(is - wanted) / std::max(1.0, std::abs(wanted)));
    }
  }
  EXPECT_LT(furthest, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(NanoTrack, Published, testing::Values(2, 3));

TEST(NanoTrack, a_target_that_moved_is_found_where_it_went) {
  if (!std::filesystem::exists(published(2))) GTEST_SKIP() << "no ../shared/data/mot/weights";
  Picture picture{640, 480, std::vector<std::uint8_t>(std::size_t(3) * 640 * 480, 90)};
  const auto paint = [&](const tracking::Box& box, int shade) {
    for (int y = 0; y < int(box.height); ++y) {
      for (int x = 0; x < int(box.width); ++x) {
        const std::size_t at = (std::size_t(box.top + y) * 640 + std::size_t(box.left + x)) * 3;
        for (std::size_t channel = 0; channel < 3; ++channel) {
          picture.values[at + channel] = std::uint8_t((x / 6 + y / 9) % 2 == 0 ? shade : 255 - shade);
        }
      }
    }
  };
  const tracking::Box first{300, 200, 40, 90};
  const tracking::Box second{312, 206, 40, 90};
  paint(first, 220);
  const auto target = std::make_shared<Crop>(target_crop(picture, first));
  std::fill(picture.values.begin(), picture.values.end(), std::uint8_t(90));
  paint(second, 220);
  for (const int version : {2, 3}) {
    const std::unique_ptr<SiameseNetwork> network(unshuffle_load_network(read_file(published(version)), "w.pth", {}));
    for (const Decoding decoding : {Decoding::best, Decoding::mean}) {
      network->decode(decoding);
      const auto found = network->predict({{target, search_crop(picture, first, network->search_side()), first}})[0];
      EXPECT_GT(found.score, 0.5) << version;
      EXPECT_GT(tracking::overlap(found.box, second), 0.8) << version;
    }
  }
}

/// A network with drawn weights whose boxes have about the right size, in double precision.
std::shared_ptr<NanoTrack> drawn(NanoVersion version, const Tensor& targets, const Tensor& searches) {
  torch::manual_seed(5);
  auto network = std::make_shared<NanoTrack>(version);
  network->to(torch::kFloat64);
  const torch::NoGradGuard no_gradient;
  // The statistics become those of these pictures, so that no layer dies.
  for (const auto& layer : network->modules(false)) {
    if (auto* normalisation = layer->as<torch::nn::BatchNorm2d>()) normalisation->options.momentum(1.0);
  }
  network->train();
  (void)network->candidates(network->features(targets), searches);
  network->eval();
  Tensor weight = network->named_parameters()["ban_head.bbox_pred.0.weight"];
  weight *= 0.1;
  network->named_parameters()["ban_head.bbox_pred.0.bias"].fill_(std::log(40.0));
  return network;
}

TEST(NanoTrack, gradient_of_a_frames_loss_in_its_weights_agrees_with_finite_differences) {
  const Tensor targets = torch::cat({test_crop(127, 3, 0), test_crop(127, 8, 0)}).to(torch::kFloat64);
  const Tensor searches = torch::cat({test_crop(255, 3, 0.3), test_crop(255, 8, 0.3)}).to(torch::kFloat64);
  const Tensor last = torch::tensor({{100., 50., 40., 90.}, {170., 60., 36., 80.}}, torch::kFloat64);
  const Tensor detections =
      torch::tensor({{104., 52., 41., 88.}, {176., 63., 38., 85.}, {300., 40., 45., 99.}}, torch::kFloat64);
  auto options = tracking::relaxed_marginals(0.05, 0.2);
  options.tolerance = 1e-11;
  for (const NanoVersion version : {NanoVersion::two, NanoVersion::three}) {
    const auto network = drawn(version, targets, searches);
    const auto candidates = [&] { return network->candidates(network->features(targets), searches); };
    for (const Decoding decoding : {Decoding::best, Decoding::mean}) {
      const Choice choice = choose(candidates(), last, network->habits(), decoding);
      const auto loss = [&] {
        const Tensor boxes = chosen_boxes(candidates(), choice, last, network->habits());
        return transport_cost(box_costs(boxes, detections, 800), options);
      };
      std::vector<std::string> names{"ban_head.bbox_pred.0.weight", "ban_head.corr_pw_reg.conv_kernel.0.weight",
                                     "ban_head.corr_pw_reg.CA_layer.fc2.bias", "backbone.features.7.conv.7.weight",
                                     "backbone.features.4.conv.7.weight"};
      // Only a mean of boxes teaches the scores.
      if (decoding == Decoding::mean) names.emplace_back("ban_head.corr_pw_cls.conv_search.0.weight");
      expect_true_slopes(*network, names, loss);
    }
  }
}

Sight sight_of(int pair, const tracking::Box& last) {
  const auto crop_of = [&](int side, double phase) {
    const Tensor values = test_crop(side, pair, phase);
    return Crop{side, {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()}};
  };
  return {std::make_shared<Crop>(crop_of(127, 0)), crop_of(255, 0.3), last};
}

/// A file of drawn weights.
std::string drawn_file() {
  const auto network = drawn(NanoVersion::two, test_crop(127, 3, 0).to(torch::kFloat64).repeat({2, 1, 1, 1}),
                             test_crop(255, 3, 0.3).to(torch::kFloat64).repeat({2, 1, 1, 1}));
  network->to(torch::kFloat32);
  StateDictionary state = tensors_of(*network);
  state.emplace("neck.downsample.0.weight", torch::ones({3}));
  return write_state(state);
}

std::unique_ptr<SiameseNetwork> loaded(const std::string& content, const Learning& learning = {}) {
  return std::unique_ptr<SiameseNetwork>(unshuffle_load_network(content, "w.pth", learning));
}

TEST(NanoTrackLearning, lowers_the_loss_moves_only_its_layers_and_goes_on_from_a_checkpoint_bit_for_bit) {
  const std::string file = drawn_file();
  const std::vector<Sight> sights{sight_of(3, {100, 50, 40, 90}), sight_of(8, {170, 60, 36, 80})};
  const Teaching teaching{.detections = {{104, 52, 41, 88}, {176, 63, 38, 85}}, .diagonal = 800};
  const auto step = [&](SiameseNetwork& network) {
    const double loss = network.learn(sights, teaching).loss;
    network.step(1e-3);
    return loss;
  };
  struct Case {
    Learning learning;
    std::string moves, stays;
  };
  for (const auto& [learning, moves, stays] :
       {Case{{}, "ban_head.bbox_pred.0.bias", "backbone.features.8.conv.0.weight"},
        Case{{.layers = {"backbone.features.8"}, .decoding = Decoding::mean},
             "backbone.features.8.conv.0.weight",
             "ban_head.bbox_pred.0.bias"}}) {
    const auto network = loaded(file, learning);
    const StateDictionary before = read_state(network->state_dictionary(), "before");
    EXPECT_EQ(before.at("neck.downsample.0.weight").numel(), 3);
    const double first = step(*network);
    for (int k = 0; k < 5; ++k) (void)step(*network);
    const std::string checkpoint = network->checkpoint();
    const double last = step(*network);
    EXPECT_LT(last, first);
    const StateDictionary after = read_state(network->state_dictionary(), "after");
    EXPECT_FALSE(before.at(moves).equal(after.at(moves))) << moves;
    EXPECT_TRUE(before.at(stays).equal(after.at(stays))) << stays;
    const auto other = loaded(file, learning);
    other->restore(checkpoint, "c");
    EXPECT_EQ(step(*other), last);
    EXPECT_EQ(other->state_dictionary(), network->state_dictionary());
  }
}

TEST(NanoTrackLearning, features_that_are_kept_answer_as_those_computed_anew) {
  const std::string file = drawn_file();
  const Sight first = sight_of(3, {100, 50, 40, 90});
  const Sight second = sight_of(8, {170, 60, 36, 80});
  const auto network = loaded(file);
  (void)network->predict({first});
  const auto kept = network->predict({second, first})[1].box;
  const auto anew = loaded(file)->predict({second, first})[1].box;
  EXPECT_NEAR(kept.left, anew.left, 1e-3);
  EXPECT_NEAR(kept.width, anew.width, 1e-3);
}

TEST(NanoTrackLearning, links_that_are_known_cost_what_their_boxes_do) {
  const auto network = loaded(drawn_file());
  const std::vector<Sight> sights{sight_of(3, {100, 50, 40, 90}), sight_of(8, {170, 60, 36, 80})};
  Teaching teaching{.detections = {{176, 63, 38, 85}, {104, 52, 41, 88}}, .diagonal = 800, .known = {-1, 0}};
  const Lesson lesson = network->judge(sights, teaching);
  const tracking::Box& box = lesson.found[1].box;
  const double shift = std::hypot(box.center_x() - 195, box.center_y() - 105.5);
  EXPECT_NEAR(lesson.loss, (shift / 800 + 1 - tracking::overlap(box, teaching.detections[0])) / 2, 1e-5);
}

TEST(NanoTrackLearning, layers_and_files_that_do_not_fit_are_refused_by_name) {
  const std::string file = drawn_file();
  const auto says = [](const std::function<void()>& act, const std::string& words) {
    EXPECT_NE(complaint(act).find(words), std::string::npos) << complaint(act);
  };
  says([&] { (void)loaded(file, {.layers = {"ban_head.bbox"}}); },
       "layers = ban_head.bbox: no parameter of NanoTrack has a name that begins so; backbone, ban_head or what is in "
       "them was expected");
  StateDictionary state = read_state(file, "w");
  state.emplace("ban_head.corr_pw.CA_layer.fc1.weight", torch::ones({1}));
  says([&] { (void)loaded(write_state(state)); }, "w.pth: holds NanoTrack 1; versions 2 and 3 are supported");
  state = read_state(file, "w");
  state.emplace("extra", torch::ones({1}));
  says([&] { (void)loaded(write_state(state)); }, "w.pth: extra is not a tensor of NanoTrack");
}

}  // namespace
}  // namespace unshuffle::pixels
