#include "unshuffle/tracking/camera.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "tracking/require.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::tracking {
namespace {

using Field = Eigen::Matrix<double, 2, 3>;

Eigen::Vector3d place(const Box& box, const Image& image) {
  const double size = image.diagonal();
  return {1, (box.center_x() - image.width / 2) / size, (box.center_y() - image.height / 2) / size};
}

/// Squared residual of a pair in tolerances.
struct Residual {
  Eigen::Vector2d shift;  ///< Of the centres, in image diagonals: the field's target value at the track's position.
  double scale;           ///< Diagonals per tolerance.
  double size_term;       ///< Part no camera motion changes: different heights.

  [[nodiscard]] double squared(const Eigen::Vector2d& field) const {
    return (shift - field).squaredNorm() / (scale * scale) + size_term;
  }
};

Residual residual_of(const Box& track, const Box& detection, const Image& image, double tolerance) {
  const double size = image.diagonal();
  const double growth = std::log(detection.height / track.height) / (2 * tolerance);
  return {{(detection.center_x() - track.center_x()) / size, (detection.center_y() - track.center_y()) / size},
          tolerance * track.height / size,
          growth * growth};
}

}  // namespace

void validate(const CameraOptions& options) {
  transport::validate(options.marginals);
  require(options.epsilon > 0, "camera epsilon", options.epsilon, "> 0");
  require(options.tolerance > 0, "camera tolerance", options.tolerance, "> 0");
  require(options.shift_sd > 0, "camera shift_sd", options.shift_sd, "> 0");
  require(options.slope_sd > 0, "camera slope_sd", options.slope_sd, "> 0");
  require(options.persistence >= 0 && options.persistence <= 1, "camera persistence", options.persistence,
          "from 0 to 1");
  require(options.iterations >= 1, "camera iterations", options.iterations, "at least 1");
}

Box CameraMotion::apply(const Box& box, const Image& image) const {
  const Eigen::Vector2d shift = image.diagonal() * (field * place(box, image));
  return {box.left + shift(0), box.top + shift(1), box.width, box.height};
}

// docs/mathematics.md §17. The pair cost is ρ(d²) = 1 - exp(-d²/2). With the plan Γ fixed, Σ Γ_ij ρ(d²_ij) is majorised
// at the current field by ½ Σ Γ_ij exp(-d²_ij/2) d²_ij, so each turn solves a plan and then one weighted ridge
// regression; the entropic value plus the ridge never rises.
CameraMotion estimate_camera(const std::vector<Box>& predicted, const std::vector<Box>& detected, const Image& image,
                             const CameraMotion& expected, const CameraOptions& options) {
  CameraMotion motion = expected;
  if (predicted.empty() || detected.empty()) return motion;
  const auto rows = Index(detected.size());
  const auto columns = Index(predicted.size());
  std::vector<Residual> pairs;
  for (const Box& track : predicted) {
    for (const Box& detection : detected) pairs.push_back(residual_of(track, detection, image, options.tolerance));
  }
  transport::SolverOptions solving{.epsilon = options.epsilon, .relative = false};
  solving.rows = solving.columns = options.marginals;
  transport::Solver solver(solving);
  const Eigen::Vector3d precision{1 / (options.shift_sd * options.shift_sd), 1 / (options.slope_sd * options.slope_sd),
                                  1 / (options.slope_sd * options.slope_sd)};
  const auto mass = double(std::min(rows, columns));
  Matrix squared(rows, columns);
  for (int turn = 0; turn < options.iterations; ++turn) {
    for (Index j = 0; j < columns; ++j) {
      const Eigen::Vector2d field = motion.field * place(predicted[std::size_t(j)], image);
      for (Index i = 0; i < rows; ++i) squared(i, j) = pairs[std::size_t(j * rows + i)].squared(field);
    }
    const Matrix closeness = (-0.5 * squared.array()).exp();
    const transport::Solution solution = solver.solve((1 - closeness.array()).matrix());
    Eigen::Matrix3d normal = precision.asDiagonal();
    Field right = expected.field * normal;
    for (Index j = 0; j < columns; ++j) {
      const Eigen::Vector3d at = place(predicted[std::size_t(j)], image);
      for (Index i = 0; i < rows; ++i) {
        const Residual& pair = pairs[std::size_t(j * rows + i)];
        const double weight = mass * solution.plan()(i, j) * closeness(i, j) / (pair.scale * pair.scale);
        normal += weight * at * at.transpose();
        right += weight * pair.shift * at.transpose();
      }
    }
    motion.field = normal.ldlt().solve(right.transpose()).transpose();
  }
  return motion;
}

}  // namespace unshuffle::tracking
