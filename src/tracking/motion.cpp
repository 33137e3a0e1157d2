#include "unshuffle/tracking/motion.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/random.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::tracking {
namespace {

constexpr int linear_size = 3 * motion_inputs;
// Limits on predictions: no box moves two heights or changes its size fourfold between frames.
constexpr double farthest = 2;
constexpr double most_growth = 1.4;

}  // namespace

double Image::diagonal() const { return std::hypot(width, height); }

MotionInput motion_input(const TrackState& track, const Image& image) {
  MotionInput input;
  const double size = image.diagonal();
  input << 1, (track.box.center_x() - image.width / 2) / size, (track.box.center_y() - image.height / 2) / size,
      track.last, track.smooth;
  return input;
}

Box moved(const Box& box, const Motion& motion) {
  const double growth = std::exp(motion(2));
  return box_around(box.center_x() + motion(0) * box.height, box.center_y() + motion(1) * box.height,
                    box.width * growth, box.height * growth);
}

MotionModel::MotionModel(int hidden) : hidden_(hidden) {
  if (hidden < 0) throw InvalidInput(fmt::format("hidden = {} must be at least 0", hidden));
  values_ = Vector::Zero(linear_size + Index(hidden) * (motion_inputs + 3));
}

MotionModel MotionModel::constant_velocity(int hidden) {
  MotionModel model(hidden);
  for (Index k = 0; k < 3; ++k) model.values_(3 * (6 + k) + k) = 1;
  return model;
}

void MotionModel::draw_hidden_weights(std::uint64_t seed) {
  RandomStream random(seed, Stream::hidden_weights);
  for (Index at = 0; at < Index(hidden_) * motion_inputs; ++at) {
    values_(linear_size + at) = random.normal() / std::sqrt(double(motion_inputs));
  }
}

void MotionModel::set_values(const Vector& values) {
  if (values.size() != values_.size()) {
    throw InvalidInput(fmt::format("{} motion parameters were given; {} were expected", values.size(), values_.size()));
  }
  values_ = values;
}

Eigen::Map<const Eigen::Matrix<double, 3, motion_inputs>> MotionModel::linear() const {
  return Eigen::Map<const Eigen::Matrix<double, 3, motion_inputs>>(values_.data());
}

Eigen::Map<const Matrix> MotionModel::hidden_weights() const {
  return {values_.data() + linear_size, hidden_, motion_inputs};
}

Eigen::Map<const Matrix> MotionModel::output_weights() const {
  return {values_.data() + linear_size + Index(hidden_) * motion_inputs, 3, hidden_};
}

Motion MotionModel::predict(const MotionInput& input) const {
  Motion motion = linear() * input;
  if (hidden_ > 0) motion += output_weights() * (hidden_weights() * input).array().tanh().matrix();
  motion.head<2>() = motion.head<2>().cwiseMax(-farthest).cwiseMin(farthest);
  motion(2) = std::min(most_growth, std::max(-most_growth, motion(2)));
  return motion;
}

void MotionModel::add_gradient(const MotionInput& input, const Motion& slope, Eigen::Ref<Vector> gradient) const {
  Eigen::Map<Eigen::Matrix<double, 3, motion_inputs>>(gradient.data()) += slope * input.transpose();
  if (hidden_ == 0) return;
  const Vector unit = (hidden_weights() * input).array().tanh();
  const Vector back = (output_weights().transpose() * slope).array() * (1 - unit.array().square());
  Eigen::Map<Matrix>(gradient.data() + linear_size, hidden_, motion_inputs) += back * input.transpose();
  Eigen::Map<Matrix>(gradient.data() + linear_size + Index(hidden_) * motion_inputs, 3, hidden_) +=
      slope * unit.transpose();
}

}  // namespace unshuffle::tracking
