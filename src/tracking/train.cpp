#include "unshuffle/tracking/train.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.hpp"
#include "tracking/box_cost.hpp"
#include "tracking/require.hpp"
#include "tracking/transport_loss.hpp"

namespace unshuffle::tracking {
namespace {

Box predicted_box(const Prediction& track, const MotionModel& model) {
  Box box = moved(track.from, model.predict(track.input));
  box.left += track.camera(0);
  box.top += track.camera(1);
  return box;
}

std::vector<Box> predicted_boxes(const TrainFrame& frame, const MotionModel& model) {
  std::vector<Box> boxes;
  for (const Prediction& track : frame.tracks) boxes.push_back(predicted_box(track, model));
  return boxes;
}

Matrix cost_of(const TrainFrame& frame, const std::vector<Box>& boxes) {
  return Matrix::NullaryExpr(Index(frame.detections.size()), Index(boxes.size()), [&](Index i, Index j) {
    return box_cost(boxes[std::size_t(j)], frame.detections[std::size_t(i)], frame.diagonal);
  });
}

// `moved` gives left = cx + m₀h - w'/2, top likewise, w' = w·exp(m₂), h' = h·exp(m₂).
Motion motion_slope(const Prediction& track, const Box& moved_box, const Eigen::Vector4d& box_slope) {
  const double w = moved_box.width;
  const double h = moved_box.height;
  return {box_slope(0) * track.from.height, box_slope(1) * track.from.height,
          -box_slope(0) * w / 2 - box_slope(1) * h / 2 + box_slope(2) * w + box_slope(3) * h};
}

// Both are scaled to min(n, m) pairs.
TransportLoss lost_links(const Matrix& cost, const TrainOptions& options) {
  const TransportLoss loss = transport_loss(cost, relaxed_marginals(options.epsilon, options.unmatched));
  const auto pairs = double(std::min(cost.rows(), cost.cols()));
  return {pairs * loss.value, pairs * loss.weights};
}

TransportLoss known_links(const Matrix& cost, const std::vector<Index>& links) {
  TransportLoss known{0, Matrix::Zero(cost.rows(), cost.cols())};
  for (Index j = 0; j < cost.cols(); ++j) {
    const Index i = links[std::size_t(j)];
    if (i < 0) continue;
    known.value += cost(i, j);
    known.weights(i, j) = 1;
  }
  return known;
}

/// Adam (Kingma & Ba 2015) with its usual decay rates.
void adam_step(TrainState& state, const Vector& gradient, double learning_rate) {
  constexpr double keep_first = 0.9;
  constexpr double keep_second = 0.999;
  ++state.steps;
  state.first_moment = keep_first * state.first_moment + (1 - keep_first) * gradient;
  state.second_moment = keep_second * state.second_moment + (1 - keep_second) * gradient.cwiseAbs2();
  const double first_scale = 1 - std::pow(keep_first, state.steps);
  const double second_scale = 1 - std::pow(keep_second, state.steps);
  const Eigen::ArrayXd size = (state.second_moment.array() / second_scale).sqrt() + 1e-8;
  state.model.set_values(state.model.values() -
                         (learning_rate / first_scale * state.first_moment.array() / size).matrix());
}

}  // namespace

void validate(const TrainOptions& options) {
  require_training(options, options);
  require(options.round >= 1, "round", options.round, "at least 1");
  require(options.patience >= 1, "patience", options.patience, "at least 1");
  require(options.least_gain >= 0, "least_gain", options.least_gain, "at least 0");
}

TrainState::TrainState(MotionModel start)
    : model(std::move(start)),
      first_moment(Vector::Zero(model.size())),
      second_moment(Vector::Zero(model.size())),
      tracked(model),
      best(model),
      best_objective(std::numeric_limits<double>::max()) {}

double frame_objective(const TrainFrame& frame, const MotionModel& model, const TrainOptions& options) {
  if (frame.detections.empty() || frame.tracks.empty()) return 0;
  const Matrix cost = cost_of(frame, predicted_boxes(frame, model));
  const auto solving = relaxed_marginals(options.epsilon, options.unmatched);
  return double(std::min(cost.rows(), cost.cols())) * transport::solve(cost, solving).transport_cost();
}

FrameLoss frame_loss(const TrainFrame& frame, const MotionModel& model, const TrainOptions& options) {
  const auto rows = Index(frame.detections.size());
  const auto columns = Index(frame.tracks.size());
  FrameLoss loss{.gradient = Vector::Zero(model.size())};
  if (rows == 0 || columns == 0) return loss;
  const std::vector<Box> boxes = predicted_boxes(frame, model);
  const Matrix cost = cost_of(frame, boxes);
  const TransportLoss weighted = frame.links.empty() ? lost_links(cost, options) : known_links(cost, frame.links);
  loss.value = weighted.value;
  loss.pairs = double(std::min(rows, columns));
  for (Index j = 0; j < columns; ++j) {
    const Box& box = boxes[std::size_t(j)];
    Eigen::Vector4d slope = Eigen::Vector4d::Zero();
    for (Index i = 0; i < rows; ++i) {
      slope += weighted.weights(i, j) * box_cost_slope(box, frame.detections[std::size_t(i)], frame.diagonal);
    }
    const Prediction& track = frame.tracks[std::size_t(j)];
    model.add_gradient(track.input, motion_slope(track, box, slope), loss.gradient);
  }
  return loss;
}

std::vector<TrainFrame> frames_of(const Detections& video, const MotionModel& model, const TrackerOptions& options) {
  const Image image{video.info.width, video.info.height};
  Tracker tracker(model, image, options);
  std::vector<TrainFrame> frames;
  int number = 0;
  const Confidence confidence = Confidence::of(video.frames);
  tracker.set_confidence(confidence);
  for (const auto& detections : video.frames) {
    tracker.step(detections);
    TrainFrame frame{tracker.predictions(), {}, image.diagonal(), ++number};
    for (const Detection& detection : detections) {
      const bool used = detection.confidence >= options.least_confidence;
      if (used && confidence(detection.confidence) >= options.trust.match) frame.detections.push_back(detection.box);
    }
    if (!frame.tracks.empty() && !frame.detections.empty()) frames.push_back(std::move(frame));
  }
  return frames;
}

void train_epoch(TrainState& state, const std::vector<TrainFrame>& frames, const TrainOptions& options) {
  RandomStream random(options.seed, Stream::training_epoch, std::uint64_t(state.epochs()));
  std::vector<Index> order(frames.size());
  std::iota(order.begin(), order.end(), Index{0});
  shuffle(order, random);
  double value = 0;
  double pairs = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += std::size_t(options.batch)) {
    const std::size_t count = std::min(std::size_t(options.batch), order.size() - begin);
    std::vector<FrameLoss> losses(count);
#pragma omp parallel for schedule(dynamic)
    for (std::size_t at = 0; at < count; ++at) {
      losses[at] = frame_loss(frames[std::size_t(order[begin + at])], state.model, options);
    }
    Vector gradient = Vector::Zero(state.model.size());
    double batch_pairs = 0;
    for (const FrameLoss& loss : losses) {
      gradient += loss.gradient;
      value += loss.value;
      batch_pairs += loss.pairs;
    }
    pairs += batch_pairs;
    if (batch_pairs > 0 && gradient.allFinite()) adam_step(state, gradient / batch_pairs, options.learning_rate);
  }
  state.objectives.push_back(pairs > 0 ? value / pairs : 0);
  ++state.round_epochs;
  ++state.epochs_since_gain;
  if (state.objectives.back() < state.best_objective * (1 - options.least_gain)) {
    state.best_objective = state.objectives.back();
    state.best = state.model;
    state.epochs_since_gain = 0;
  }
}

bool finished(const TrainState& state, const TrainOptions& options) {
  return state.settled || state.epochs() >= options.epochs;
}

namespace {

std::vector<TrainFrame> frames_of_all(const std::vector<Detections>& videos, const MotionModel& model,
                                      const TrackerOptions& options) {
  std::vector<TrainFrame> frames;
  for (const Detections& video : videos) {
    auto more = frames_of(video, model, options);
    std::move(more.begin(), more.end(), std::back_inserter(frames));
  }
  return frames;
}

void end_round(TrainState& state, const TrainOptions& options) {
  const double first = state.objectives[state.objectives.size() - std::size_t(state.round_epochs)];
  state.settled = !(state.best_objective < first * (1 - options.least_gain));
  state.model = state.tracked = state.best;
  state.best_objective = std::numeric_limits<double>::max();
  state.round_epochs = state.epochs_since_gain = 0;
}

}  // namespace

void train(TrainState& state, const std::vector<Detections>& videos, const TrainOptions& options,
           const TrainWatch& watch) {
  validate(options);
  std::vector<TrainFrame> frames;
  while (!finished(state, options)) {
    if (frames.empty()) frames = frames_of_all(videos, state.tracked, options.tracker);
    train_epoch(state, frames, options);
    if (state.round_epochs >= options.round || state.epochs_since_gain >= options.patience) {
      end_round(state, options);
      frames.clear();
    }
    if (watch && !watch(state)) return;
  }
}

}  // namespace unshuffle::tracking
