#include "unshuffle/tracking/camera.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <variant>

#include "tracking/box_grid.hpp"
#include "tracking/require.hpp"
#include "transport/dual.hpp"
#include "transport/saturated_kernel.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::tracking {
namespace {

using Field = Eigen::Matrix<double, 2, 3>;

Eigen::Vector3d place(const Box& box, const Image& image) {
  const double size = image.diagonal();
  return {1, (box.center_x() - image.width / 2) / size, (box.center_y() - image.height / 2) / size};
}

/// A detection (the row) that a track (the column) may be. Closeness is exp(-d²/2), d the residual in tolerances;
/// different heights count towards it, which no motion of the camera changes.
struct FieldPair {
  transport::ClosePair pair;
  Eigen::Vector2d shift;  ///< Of the centres, in image diagonals: the field's target value at the track's position.
  double scale;           ///< Diagonals per tolerance.
};

/// Pairs whose cost differs from 1 under this motion.
class ClosePairs {
 public:
  ClosePairs(const std::vector<Box>& predicted, const std::vector<Box>& detected, const Image& image, double tolerance)
      : predicted_(predicted), detected_(detected), image_(image), tolerance_(tolerance), grid_(detected) {}

  [[nodiscard]] std::vector<FieldPair> under(const CameraMotion& motion) const {
    constexpr double farthest = 7.5;  // tolerances, where the closeness is below 1e-12
    std::vector<FieldPair> found;
    for (std::size_t j = 0; j < predicted_.size(); ++j) {
      const Box moved = motion.apply(predicted_[j], image_);
      const double reach = 2 * farthest * tolerance_ * moved.height;
      for (const std::size_t i : grid_.near(box_around(moved.center_x(), moved.center_y(), reach, reach))) {
        found.push_back(pair_of(i, j, moved));
        if (found.back().pair.closeness < 1e-12) found.pop_back();
      }
    }
    return found;
  }

 private:
  [[nodiscard]] FieldPair pair_of(std::size_t i, std::size_t j, const Box& moved) const {
    const Box& detection = detected_[i];
    const Box& track = predicted_[j];
    const double size = image_.diagonal(), scale = tolerance_ * track.height / size;
    const auto shift_from = [&](const Box& box) -> Eigen::Vector2d {
      return Eigen::Vector2d(detection.center_x() - box.center_x(), detection.center_y() - box.center_y()) / size;
    };
    const double growth = std::log(detection.height / track.height) / (2 * tolerance_);
    const double squared = shift_from(moved).squaredNorm() / (scale * scale) + growth * growth;
    return {{Index(i), Index(j), std::exp(-0.5 * squared)}, shift_from(track), scale};
  }

  const std::vector<Box>& predicted_;
  const std::vector<Box>& detected_;
  const Image& image_;
  double tolerance_;
  BoxGrid grid_;
};

/// The plan's masses at close pairs, solved from where the last plan ended.
class Plans {
 public:
  Plans(Index rows, Index columns, const CameraOptions& options)
      : options_(options), rows_(rows), columns_(columns), potential_(Vector::Zero(columns)) {}

  Vector masses(const std::vector<transport::ClosePair>& close) {
    const bool needs_factor = std::holds_alternative<transport::Ball>(options_.marginals);
    if (needs_factor || options_.epsilon < transport::SaturatedKernel::least_epsilon) return of_dense(close);
    transport::SaturatedKernel kernel(rows_, columns_, close, options_.epsilon);
    const auto side = [&](Index count) {
      return transport::SideTerms(options_.marginals, Vector::Constant(count, 1.0 / double(count)), options_.epsilon);
    };
    const transport::SideTerms detections = side(rows_), tracks = side(columns_);
    transport::DualSolver<transport::SaturatedKernel> solver(kernel, detections, tracks);
    solver.begin(potential_);
    potential_ = solver.maximise({}).v;
    return masses_of(close, [&](const transport::ClosePair& pair) { return kernel.mass(pair); });
  }

 private:
  [[nodiscard]] Vector of_dense(const std::vector<transport::ClosePair>& close) const {
    Matrix cost = Matrix::Ones(rows_, columns_);
    for (const auto& pair : close) cost(pair.row, pair.column) = 1 - pair.closeness;
    transport::SolverOptions solving{.epsilon = options_.epsilon, .relative = false};
    solving.rows = solving.columns = options_.marginals;
    const transport::Solution solution = transport::solve(cost, solving);
    return masses_of(close, [&](const transport::ClosePair& pair) { return solution.plan()(pair.row, pair.column); });
  }

  template <class Mass>
  static Vector masses_of(const std::vector<transport::ClosePair>& close, const Mass& mass) {
    return Vector::NullaryExpr(Index(close.size()), [&](Index k) { return mass(close[std::size_t(k)]); });
  }

  const CameraOptions& options_;
  Index rows_, columns_;
  Vector potential_;
};

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
  const ClosePairs pairs(predicted, detected, image, options.tolerance);
  Plans plans(Index(detected.size()), Index(predicted.size()), options);
  const Eigen::Vector3d precision{1 / (options.shift_sd * options.shift_sd), 1 / (options.slope_sd * options.slope_sd),
                                  1 / (options.slope_sd * options.slope_sd)};
  const auto mass = double(std::min(predicted.size(), detected.size()));
  for (int turn = 0; turn < options.iterations; ++turn) {
    const std::vector<FieldPair> near = pairs.under(motion);
    std::vector<transport::ClosePair> close;
    for (const FieldPair& found_pair : near) close.push_back(found_pair.pair);
    const Vector masses = plans.masses(close);
    Eigen::Matrix3d normal = precision.asDiagonal();
    Field right = expected.field * normal;
    for (std::size_t k = 0; k < near.size(); ++k) {
      const Eigen::Vector3d at = place(predicted[std::size_t(close[k].column)], image);
      const double weight = mass * masses[Index(k)] * close[k].closeness / (near[k].scale * near[k].scale);
      normal += weight * at * at.transpose();
      right += weight * near[k].shift * at.transpose();
    }
    motion.field = normal.ldlt().solve(right.transpose()).transpose();
  }
  return motion;
}

}  // namespace unshuffle::tracking
