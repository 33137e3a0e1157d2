#include "pixels/torch/decoding.hpp"

#include <limits>

namespace unshuffle::pixels {

using torch::Tensor;

namespace {

/// √((w+p)(h+p)), p = (w+h)/2.
Tensor context(const Tensor& width, const Tensor& height) {
  const Tensor margin = (width + height) / 2;
  return ((width + margin) * (height + margin)).sqrt();
}

/// r s - 1 with r and s ≥ 1 how much ratio and size differ from those of the last box.
Tensor change_of_shape(const Tensor& width, const Tensor& height, const Tensor& last_width, const Tensor& last_height) {
  const auto change = [](const Tensor& ratio) { return torch::maximum(ratio, 1 / ratio); };
  const Tensor size = change(context(width, height) / context(last_width, last_height));
  const Tensor ratio = change((last_width / last_height) / (width / height));
  return ratio * size - 1;
}

/// Crop pixels per image pixel, n×1.
Tensor scale_of(const Tensor& last) { return target_side / context(last.slice(1, 2, 3), last.slice(1, 3, 4)); }

/// Nearness of every place to the crop's centre, from 0 to 1.
Tensor window_of(const Habits& habits, const torch::TensorOptions& as) {
  const Tensor hann = torch::hann_window(habits.grid_side, false, as);
  return torch::outer(hann, hann).flatten().repeat(habits.anchors);
}

/// The places of the same anchor at most one step from the chosen one.
Tensor neighbours(const Tensor& place, const Habits& habits) {
  const int side = habits.grid_side;
  const Tensor all = torch::arange(std::int64_t{habits.anchors} * side * side).unsqueeze(0);
  const auto steps = [&](const Tensor& a, const Tensor& b) { return (a - b).abs(); };
  const auto column = [&](const Tensor& at) { return at.remainder(side); };
  const auto row = [&](const Tensor& at) { return at.div(side, "floor").remainder(side); };
  const auto anchor = [&](const Tensor& at) { return at.div(std::int64_t{side} * side, "floor"); };
  return steps(column(all), column(place))
      .le(1)
      .logical_and(steps(row(all), row(place)).le(1))
      .logical_and(anchor(all).eq(anchor(place)));
}

}  // namespace

// The place is chosen by score, likeness of shape and distance from the crop's centre; its score and likeness also
// determine how much of its size to use. Neither is differentiated: no gradient shows whether another place would have
// been better, and scores trained through the size's share only make the choice jump.
Choice choose(const Candidates& candidates, const Tensor& last, const Habits& habits, Decoding decoding) {
  const torch::NoGradGuard not_differentiated;
  const Tensor last_size = last.slice(1, 2, 4) * scale_of(last);
  const Tensor change = change_of_shape(candidates.box.select(1, 2), candidates.box.select(1, 3),
                                        last_size.slice(1, 0, 1), last_size.slice(1, 1, 2));
  const Tensor believed = candidates.logit.sigmoid() * torch::exp(-change * habits.shape_penalty);
  const Tensor window = window_of(habits, candidates.logit.options());
  const Tensor place = (believed * (1 - habits.window_share) + window * habits.window_share).argmax(1, true);
  return {place, believed.gather(1, place), decoding == Decoding::mean ? neighbours(place, habits) : Tensor()};
}

Tensor chosen_boxes(const Candidates& candidates, const Choice& choice, const Tensor& last, const Habits& habits) {
  Tensor box;
  if (choice.near.defined()) {
    constexpr double nothing = -std::numeric_limits<double>::infinity();
    const Tensor weight = candidates.logit.masked_fill(choice.near.logical_not(), nothing).softmax(1);
    box = (candidates.box * weight.unsqueeze(1)).sum(2);
  } else {
    box = candidates.box.gather(2, choice.place.unsqueeze(1).expand({-1, 4, 1})).squeeze(2);
  }
  const Tensor scale = scale_of(last);
  const Tensor share = habits.size_share * choice.score;
  const Tensor last_size = last.slice(1, 2, 4);
  const Tensor size = last_size * (1 - share) + box.slice(1, 2, 4) / scale * share;
  const Tensor center = last.slice(1, 0, 2) + last_size / 2 + box.slice(1, 0, 2) / scale;
  return torch::cat({center - size / 2, size}, 1);
}

}  // namespace unshuffle::pixels
