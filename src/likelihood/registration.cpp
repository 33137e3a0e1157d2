#include "likelihood/registration.hpp"

#include <algorithm>
#include <cmath>

#include "core/in_parallel.hpp"

namespace unshuffle {

namespace {

/// Standard deviations of the noise, in those of the responses: all starts begin with the first and are compared at the
/// second, and the best go down to the last before the noise is estimated.
constexpr double first_noise = 0.5, compared_noise = 0.15, last_noise = 0.02;
constexpr double cooling = 0.8;
constexpr Index space_starts = 144, plane_starts = 36;
constexpr std::size_t most_refined = 24;
constexpr int most_settling_steps = 300;
/// Poses that move the features no further apart than this, in standard deviations of the responses, are the same.
constexpr double same_pose = 0.1;

double distance(const Pose& a, const Pose& b, const Matrix& z) {
  return (a.transform.of(z) - b.transform.of(z)).norm() / std::sqrt(static_cast<double>(z.rows()));
}

/// Distinct ones, most likely first.
std::vector<Pose> distinct(std::vector<Pose> poses, const TwoClouds& clouds, std::size_t most) {
  std::stable_sort(poses.begin(), poses.end(), [](const Pose& a, const Pose& b) { return a.nats > b.nats; });
  const double apart = same_pose * std::sqrt(clouds.variance());
  std::vector<Pose> kept;
  for (const Pose& pose : poses) {
    if (kept.size() == most) break;
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const Pose& other) { return distance(pose, other, clouds.z) < apart; }))
      kept.push_back(pose);
  }
  return kept;
}

/// Rotated about the medians, which outliers move least, at the responses' spread where the map has a scale.
std::vector<Pose> starting_poses(const TwoClouds& clouds, const SpatialMap& map, Index count) {
  const auto medians = [](const Matrix& points) {
    Vector made(points.cols());
    for (Index o = 0; o < points.cols(); ++o) {
      Vector sorted = points.col(o);
      std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
      made[o] = sorted[sorted.size() / 2];
    }
    return made;
  };
  const auto spread = [](const Matrix& points, const Vector& about) {
    Vector distances = (points.rowwise() - about.transpose()).rowwise().norm();
    std::nth_element(distances.begin(), distances.begin() + distances.size() / 2, distances.end());
    return distances[distances.size() / 2];
  };
  const Vector y = medians(clouds.y), z = medians(clouds.z);
  const double of_z = spread(clouds.z, z),
               scale = map.kind() == MapKind::rigid || of_z == 0 ? 1 : spread(clouds.y, y) / of_z;
  std::vector<Matrix> turns = spread_rotations(map.dimension(), count);
  if (map.kind() == MapKind::affine) {  // which may mirror
    const std::size_t proper = turns.size();
    for (std::size_t k = 0; k < proper; ++k) {
      turns.push_back(turns[k]);
      turns.back().col(0) *= -1;
    }
  }
  std::vector<Pose> starts;
  for (const Matrix& turn : turns) {
    Pose start;
    start.transform.linear = scale * turn;
    start.transform.shift = y - start.transform.linear * z;
    start.links = 0.5 * static_cast<double>(std::min(clouds.y.rows(), clouds.z.rows()));
    starts.push_back(std::move(start));
  }
  return starts;
}

class RotationSearch {
 public:
  RotationSearch(const TwoClouds& clouds, const SpatialMap& map, const ClutterFit::Fixed& fixed)
      : clouds_(clouds), map_(map), fixed_(fixed), unit_(clouds.variance()) {}

  /// Cools to `last`; the nats are those at that noise.
  Pose cooled(const Pose& from, double first, double last, int& steps) const {
    ClutterFit fit(clouds_, map_, fixed_, from);
    for (double noise = first; noise > last; noise *= cooling, ++steps) (void)fit.step(noise * noise * unit_);
    (void)fit.step(last * last * unit_);
    ++steps;
    return fit.pose();
  }

  /// All down to the noise at which they are compared, the best to the end.
  void refine(std::vector<Pose>& poses, int& steps) const {
    std::vector<int> of_pose(poses.size(), 0);
    in_parallel(poses.size(),
                [&](std::size_t k) { poses[k] = cooled(poses[k], first_noise, compared_noise, of_pose[k]); });
    poses = distinct(std::move(poses), clouds_, most_refined);
    in_parallel(poses.size(), [&](std::size_t k) {
      ClutterFit fit(clouds_, map_, fixed_, cooled(poses[k], cooling * compared_noise, last_noise, of_pose[k]));
      (void)settle(fit, of_pose[k]);
      poses[k] = fit.pose();
    });
    for (const int count : of_pose) steps += count;
  }

  bool settle(ClutterFit& fit, int& steps) const {
    const double little = 1e-9 * std::sqrt(unit_);
    for (int k = 0; k < most_settling_steps; ++k, ++steps) {
      const double before = fit.pose().variance;
      const double moved = fit.step(0);
      if (moved < little && std::abs(fit.pose().variance - before) <= 1e-6 * before) return true;
      if (moved < little && fit.pose().variance <= 1e-11 * unit_) return true;
    }
    return false;
  }

 private:
  const TwoClouds& clouds_;
  const SpatialMap& map_;
  const ClutterFit::Fixed& fixed_;
  double unit_;
};

}  // namespace

double gain_by_chance(const SpatialMap& map, int starts, Index rows) {
  constexpr double decided = 3;
  return std::log(static_cast<double>(starts)) +
         0.5 * static_cast<double>(map.parameters()) * std::log(static_cast<double>(rows)) + decided;
}

Registered registered(const TwoClouds& clouds, const SpatialMap& map, const ClutterFit::Fixed& fixed,
                      const KeepGoing& keep_going) {
  const RotationSearch search(clouds, map, fixed);
  Registered result;
  const Index first = map.dimension() == 2 ? plane_starts : space_starts;
  for (const Index more : {Index{1}, Index{5}}) {  // more where few rows have partners, or many maps fit
    std::vector<Pose> poses = starting_poses(clouds, map, more * first);
    result.starts += static_cast<int>(poses.size());
    search.refine(poses, result.steps);
    poses.insert(poses.end(), result.poses.begin(), result.poses.end());
    result.poses = distinct(std::move(poses), clouds, most_refined);
    result.stopped = !keep_going(more == 1 ? 0.2 : 0.9);
    const double gap = result.poses.size() > 1 ? result.poses[0].nats - result.poses[1].nats : certain_gap;
    const double chance = gain_by_chance(map, result.starts, clouds.y.rows());
    if (result.stopped || (gap >= certain_gap && result.poses.front().nats > chance)) break;
  }
  ClutterFit fit(clouds, map, fixed, result.poses.front());
  result.converged = search.settle(fit, result.steps);
  result.poses.front() = fit.pose();
  result.probabilities = fit.probabilities();
  (void)keep_going(1);
  return result;
}

}  // namespace unshuffle
