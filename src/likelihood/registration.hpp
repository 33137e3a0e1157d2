// The most likely map between two sets of points, of which some have no partner, from any rotation.
#pragma once

#include <functional>

#include "likelihood/clutter.hpp"

namespace unshuffle {

struct Registered {
  std::vector<Pose> poses;  ///< Distinct, most likely first.
  Matrix probabilities;     ///< Of the links at the first, n×m.
  int steps = 0;            ///< Of all poses.
  int starts = 0;
  bool converged = false;  ///< The first.
  bool stopped = false;
};

/// What the best map of so many starts gains between points that have nothing to do with each other, at most.
[[nodiscard]] double gain_by_chance(const SpatialMap& map, int starts, Index rows);

/// Nats that a map has to be more likely than the next to be certain.
inline constexpr double certain_gap = 8;

/// Calls progress with the share of the work that is done; false stops it.
using KeepGoing = std::function<bool(double share)>;

[[nodiscard]] Registered registered(const TwoClouds& clouds, const SpatialMap& map, const ClutterFit::Fixed& fixed,
                                    const KeepGoing& keep_going);

}  // namespace unshuffle
