// Maps of the plane and of space: rotations and their derivatives, least squares, and the model's part in a fit.
#include "unshuffle/model/spatial.hpp"

#include <gtest/gtest.h>

#include <numbers>

#include "oracle/transport_support.hpp"
#include "support/complaint.hpp"
#include "unshuffle/model/registry.hpp"

namespace unshuffle {
namespace {

using transport::testing::Draw;

Problem points(Draw& draw, Index n, Index dimension) {
  Problem problem;
  problem.z = draw.normals(n, dimension);
  problem.y = draw.normals(n, dimension);
  return completed(problem);
}

TEST(Rotation, is_proper_and_found_again) {
  Draw draw(2631);
  for (int round = 0; round < 200; ++round) {
    Vector angles = draw.normals(3);
    const double length = round % 4 == 0 ? 1e-9 : round % 4 == 1 ? std::numbers::pi - 1e-7 : draw.uniform(0, 3.14);
    angles *= length / angles.norm();
    const Matrix r = rotation(angles);
    EXPECT_LE((r.transpose() * r - Matrix::Identity(3, 3)).norm(), 1e-14);
    EXPECT_NEAR(r.determinant(), 1, 1e-14);
    EXPECT_LE((angles_of(r) - angles).norm(), 1e-7);
  }
  const Vector quarter = Vector::Constant(1, 0.5 * std::numbers::pi);
  EXPECT_LE((rotation(quarter) - (Matrix(2, 2) << 0, -1, 1, 0).finished()).norm(), 1e-15);
  EXPECT_NEAR(angles_of(rotation(quarter))[0], quarter[0], 1e-15);
}

TEST(Rotation, has_the_derivatives_of_differences) {
  Draw draw(2632);
  for (const double length : {0.0, 1e-5, 9e-3, 1.1e-2, 1.0, 3.1, 5.0})
    for (const Index count : {1, 3}) {
      const Vector unit = draw.normals(count).normalized(), angles = length * unit;
      const std::vector<Matrix> slopes = rotation_derivatives(angles);
      ASSERT_EQ(Index(slopes.size()), count);
      for (Index k = 0; k < count; ++k) {
        const double h = 1e-5;
        const Matrix by_differences =
            (rotation(angles + h * Vector::Unit(count, k)) - rotation(angles - h * Vector::Unit(count, k))) / (2 * h);
        EXPECT_LE((slopes[std::size_t(k)] - by_differences).norm(), 1e-9) << length;
      }
    }
}

TEST(SpatialMap, has_the_gradient_of_differences) {
  Draw draw(2633);
  for (const MapKind kind : {MapKind::rigid, MapKind::similarity, MapKind::affine})
    for (const Index dimension : {2, 3}) {
      const Problem problem = points(draw, 7, dimension);
      const auto bound = SpatialMap(kind).bound_to(problem);
      const Vector w = draw.normals(bound->parameters());
      const Matrix cotangent = draw.normals(7, dimension);
      const auto value = [&](const Vector& at) {
        return bound->additive()->part(Side::feature, problem.z, at).cwiseProduct(cotangent).sum();
      };
      Vector gradient = Vector::Zero(w.size());
      bound->additive()->pull_back_part(Side::feature, problem.z, w, cotangent, gradient);
      for (Index k = 0; k < w.size(); ++k) {
        const Vector h = 1e-5 * Vector::Unit(w.size(), k);
        EXPECT_NEAR(gradient[k], (value(w + h) - value(w - h)) / 2e-5, 1e-7);
      }
    }
}

TEST(SpatialMap, is_fitted_to_linked_rows) {
  Draw draw(2634);
  for (const MapKind kind : {MapKind::rigid, MapKind::similarity, MapKind::affine})
    for (const Index dimension : {2, 3}) {
      const Problem problem = points(draw, 30, dimension);
      const auto bound = SpatialMap(kind).bound_to(problem);
      const auto& map = dynamic_cast<const SpatialMap&>(*bound);
      Vector w = draw.normals(map.parameters());
      if (kind == MapKind::similarity) w[dimension == 2 ? 1 : 3] = 1.7;
      const Vector weights = draw.weights(30);
      const Matrix y = map.part(Side::feature, problem.z, w);
      const SpatialTransform exact = map.fitted(problem.z, y, weights);
      EXPECT_LE((exact.of(problem.z) - y).norm(), 1e-9);
      EXPECT_LE((map.transform(map.parameters_of(exact)).of(problem.z) - y).norm(), 1e-9);
      // At least squares the gradient is zero.
      const Matrix noisy = y + draw.normals(30, dimension);
      const Vector best = map.parameters_of(map.fitted(problem.z, noisy, weights));
      Vector gradient = Vector::Zero(best.size());
      map.pull_back_part(Side::feature, problem.z, best,
                         weights.asDiagonal() * (map.part(Side::feature, problem.z, best) - noisy), gradient);
      EXPECT_LE(gradient.norm(), 1e-10);
    }
}

/// A mirror image is not a rotation: the nearest proper one is.
TEST(SpatialMap, never_mirrors_unless_it_is_affine) {
  Draw draw(2635);
  const Problem problem = points(draw, 30, 3);
  Matrix mirrored = problem.z;
  mirrored.col(0) *= -1;
  const Vector weights = transport::testing::equal_weights(30);
  for (const MapKind kind : {MapKind::rigid, MapKind::similarity}) {
    const auto bound = SpatialMap(kind).bound_to(problem);
    EXPECT_GT(dynamic_cast<const SpatialMap&>(*bound).fitted(problem.z, mirrored, weights).linear.determinant(), 0);
  }
}

TEST(SpatialMap, names_its_parameters_and_is_restored) {
  Draw draw(2636);
  const Problem problem = points(draw, 5, 3);
  const auto names = [&](const char* spec) { return make_model(spec, true)->bound_to(problem)->parameter_names(); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("rigid"), (Names{"turn:z1", "turn:z2", "turn:z3", "y1:shift", "y2:shift", "y3:shift"}));
  EXPECT_EQ(names("similarity")[3], "scale");
  EXPECT_EQ(names("affine"), make_model("linear", true)->bound_to(problem)->parameter_names());
  const Problem plane = points(draw, 5, 2);
  EXPECT_EQ(make_model("rigid", true)->bound_to(plane)->parameter_names(), (Names{"angle", "y1:shift", "y2:shift"}));
  const auto restored = restore_model("similarity", true, {}, {"z1", "z2"}, {"y1", "y2"}, {});
  EXPECT_EQ(restored->name(), "similarity");
  const Vector w = (Vector(4) << 0.3, 2, 1, -1).finished();
  EXPECT_EQ(restored->additive()->part(Side::feature, plane.z, w),
            make_model("similarity", true)->bound_to(plane)->additive()->part(Side::feature, plane.z, w));
}

TEST(SpatialMap, says_what_it_takes) {
  Draw draw(2637);
  Problem problem = points(draw, 5, 3);
  problem.z = problem.z.leftCols(2).eval();
  problem.z_names.clear();
  EXPECT_EQ(complaint([&] { (void)SpatialMap(MapKind::rigid).bound_to(problem); }),
            "model rigid maps points of the plane or of space: it takes two or three responses and as many columns of "
            "features; 3 and 2 were given");
  problem = points(draw, 5, 2);
  problem.x = draw.normals(5, 1);
  EXPECT_EQ(complaint([&] { (void)SpatialMap(MapKind::affine).bound_to(problem); }),
            "model affine has no part for features in the response table; 1 columns were given");
}

}  // namespace
}  // namespace unshuffle
