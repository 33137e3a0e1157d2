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
constexpr int most_brief_steps = 40, most_settling_steps = 300;
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
      (void)settle(fit, 1e-5, most_brief_steps, of_pose[k]);
      poses[k] = fit.pose();
    });
    for (const int count : of_pose) steps += count;
  }

  /// Until a step moves the features by no more than this share of the responses' standard deviation.
  bool settle(ClutterFit& fit, double share, int most, int& steps) const {
    const double little = share * std::sqrt(unit_);
    for (int k = 0; k < most; ++k, ++steps) {
      const double before = fit.pose().variance;
      const double moved = fit.step(0);
      if (moved < little && std::abs(fit.pose().variance - before) <= 1e3 * share * before) return true;
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

/// Enough responses, evenly from the table, to tell maps apart: each still has its partner among all features.
TwoClouds with_fewer_responses(const TwoClouds& clouds) {
  constexpr Index enough = 250;
  const Index n = clouds.y.rows(), count = std::min(n, enough);
  std::vector<Index> rows;
  for (Index k = 0; k < count; ++k) rows.push_back((2 * k + 1) * n / (2 * count));
  return {clouds.y(rows, Eigen::all), clouds.z, clouds.volume};
}

/// The most likely with all responses, to the end.
void finish(Registered& result, const TwoClouds& clouds, const SpatialMap& map, const ClutterFit::Fixed& fixed,
            double share) {
  constexpr std::size_t most_finished = 4;
  if (result.poses.size() > most_finished) result.poses.resize(most_finished);
  const RotationSearch search(clouds, map, fixed);
  std::vector<int> steps(result.poses.size(), 0);
  std::vector<char> converged(result.poses.size(), 0);
  std::vector<Matrix> probabilities(result.poses.size());
  for (std::size_t k = 0; k < result.poses.size(); ++k) {
    result.poses[k].links /= share;
    ClutterFit fit(clouds, map, fixed, result.poses[k]);
    converged[k] = search.settle(fit, 1e-9, most_settling_steps, steps[k]);
    result.poses[k] = fit.pose();
    probabilities[k] = fit.probabilities();
    result.steps += steps[k];
  }
  const auto best =
      static_cast<std::size_t>(std::max_element(result.poses.begin(), result.poses.end(),
                                                [](const Pose& a, const Pose& b) { return a.nats < b.nats; }) -
                               result.poses.begin());
  result.converged = converged[best] != 0;
  result.probabilities = std::move(probabilities[best]);
  result.poses = distinct(std::move(result.poses), clouds, most_finished);
}

}  // namespace

double gain_by_chance(const SpatialMap& map, int starts, Index rows) {
  constexpr double decided = 3;
  return std::log(static_cast<double>(starts)) +
         static_cast<double>(map.parameters()) * std::log(static_cast<double>(rows)) + decided;
}

Registered registered(const TwoClouds& clouds, const SpatialMap& map, const ClutterFit::Fixed& fixed,
                      const KeepGoing& keep_going) {
  const TwoClouds few = with_fewer_responses(clouds);
  const double share = static_cast<double>(few.y.rows()) / static_cast<double>(clouds.y.rows());
  const ClutterFit::Fixed fixed_of_few{fixed.noise_variance, share * fixed.links};
  const RotationSearch search(few, map, fixed_of_few);
  Registered result;
  const Index first = map.dimension() == 2 ? plane_starts : space_starts;
  for (const Index more : {Index{1}, Index{5}}) {  // more where few rows have partners, or many maps fit
    std::vector<Pose> poses = starting_poses(few, map, more * first);
    result.starts += static_cast<int>(poses.size());
    search.refine(poses, result.steps);
    poses.insert(poses.end(), result.poses.begin(), result.poses.end());
    result.poses = distinct(std::move(poses), few, most_refined);
    result.stopped = !keep_going(more == 1 ? 0.2 : 0.9);
    const double gap = result.poses.size() > 1 ? result.poses[0].nats - result.poses[1].nats : certain_gap;
    const double chance = gain_by_chance(map, result.starts, few.y.rows());
    if (result.stopped || (gap >= certain_gap && result.poses.front().nats > chance)) break;
  }
  finish(result, clouds, map, fixed, share);
  (void)keep_going(1);
  return result;
}

}  // namespace unshuffle
