// Links between two sets of points of which some have no partner, for maps of the plane and of space
// (docs/mathematics.md §19).
//
// n responses, m features, k links, one to one. A linked response is the map of its feature plus Gaussian noise of
// variance σ² in each coordinate, any other is uniform in a box of volume V. Which rows are linked is uniform given k.
#pragma once

#include "unshuffle/model/spatial.hpp"

namespace unshuffle {

/// What is estimated: a map, σ² and k.
struct Pose {
  SpatialTransform transform;
  double variance = 0;
  double links = 0;
  double nats = 0;  ///< Log-likelihood beyond that of responses none of which has a partner.
};

/// The points with the box around the responses.
struct TwoClouds {
  Matrix y, z;
  double volume = 0;

  /// Of the responses' coordinates, about their means.
  [[nodiscard]] double variance() const;
};

[[nodiscard]] TwoClouds two_clouds(Matrix y, Matrix z);

/// Expectation and maximisation of one pose. Probabilities of links P_ij = r_i s_j K_ij, with the probabilities r and s
/// that a row has no partner, solve r_i(1 + Σ_j K_ij s_j) = 1 and s_j(1 + Σ_i K_ij r_i) = 1.
class ClutterFit {
 public:
  /// What must not be estimated.
  struct Fixed {
    double noise_variance = 0;  ///< 0: estimated.
    double links = 0;           ///< Likewise.
  };

  /// All must outlive it.
  ClutterFit(const TwoClouds& clouds, const SpatialMap& map, const Fixed& fixed, Pose start);

  /// One step; σ² is set to `variance`, or estimated where that is 0. Returns how far the map moved the features in the
  /// root mean square.
  double step(double variance);
  [[nodiscard]] const Pose& pose() const { return pose_; }
  /// P of the last step, n×m.
  [[nodiscard]] const Matrix& probabilities() const { return links_; }

 private:
  void expect();
  [[nodiscard]] double nats() const;
  [[nodiscard]] double estimated_variance(const SpatialTransform& before, const Matrix& targets,
                                          const Vector& of_features) const;

  const TwoClouds& clouds_;
  const SpatialMap& map_;
  const Fixed& fixed_;
  Pose pose_;
  double least_variance_;
  Matrix squares_, links_;
  Vector response_alone_, feature_alone_;  // r and s
};

/// Evenly spread proper rotations: `count` angles, or of space a super-Fibonacci spiral of `count` quaternions.
[[nodiscard]] std::vector<Matrix> spread_rotations(Index dimension, Index count);

}  // namespace unshuffle
