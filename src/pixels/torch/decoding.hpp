// From what a network says of every place of its grid to one box per target, as SiamRPN does it; NanoTrack does
// likewise.
#pragma once

#include <torch/types.h>

#include "unshuffle/pixels/siamese.hpp"

namespace unshuffle::pixels {

struct Candidates {
  torch::Tensor box;    ///< targets × 4 × places: centre, from the crop's, width and height; in crop pixels.
  torch::Tensor logit;  ///< targets × places: of the probability that this is the target.
};

/// The published numbers of a network.
struct Habits {
  double shape_penalty;  ///< Of a change of size or ratio.
  double window_share;   ///< Of nearness to the crop's centre in the choice.
  double size_share;     ///< At most so much of a new size is used.
  int grid_side;
  int anchors = 1;  ///< Places are anchor · side² + y · side + x.
};

/// The place chosen for each target. None of it is differentiated.
struct Choice {
  torch::Tensor place;  ///< n×1.
  torch::Tensor score;  ///< n×1: its probability times how alike the shapes are.
  torch::Tensor near;   ///< n×places: whether a place takes part in the box. Undefined: only the chosen one does.
};

/// Boxes are n×4: left, top, width, height, in image pixels.
[[nodiscard]] Choice choose(const Candidates& candidates, const torch::Tensor& last, const Habits& habits,
                            Decoding decoding);

/// The boxes chosen, seen from the last boxes; differentiable in the candidates.
[[nodiscard]] torch::Tensor chosen_boxes(const Candidates& candidates, const Choice& choice, const torch::Tensor& last,
                                         const Habits& habits);

}  // namespace unshuffle::pixels
