// Registration of points: any rotation, rows without a partner on either side, and what cannot be known.
#include <gtest/gtest.h>

#include <numbers>

#include "likelihood/registration.hpp"
#include "oracle/transport_support.hpp"
#include "support/complaint.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/report/json.hpp"

namespace unshuffle {
namespace {

using transport::testing::Draw;

struct Scene {
  Problem problem;
  Matrix linear;  // of the true map
  Vector truth;
};

/// Points in space, turned by `degrees` about any axis, moved and shuffled; a share of either table has no partner.
Scene scene(Draw& draw, Index n, double degrees, double outliers, double noise, MapKind kind = MapKind::rigid) {
  Scene made;
  Problem& problem = made.problem;
  problem.z = draw.normals(n, 3);
  const Vector turn = draw.normals(3).normalized() * (degrees * std::numbers::pi / 180);
  const double scale = kind == MapKind::rigid ? 1 : 0.6;
  made.linear = scale * rotation(turn);
  const Vector shift = 5 * draw.normals(3);
  made.truth.resize(kind == MapKind::rigid ? 6 : 7);
  made.truth << turn, Vector::Constant(made.truth.size() - 6, scale), shift;
  Matrix y = (problem.z * made.linear.transpose()).rowwise() + shift.transpose();
  y += noise * draw.normals(n, 3);
  const auto strangers = static_cast<Index>(outliers * static_cast<double>(n));
  const auto scatter = [&](Matrix& points) {
    const Eigen::RowVectorXd low = points.colwise().minCoeff(), high = points.colwise().maxCoeff();
    for (Index i = n - strangers; i < n; ++i)
      for (Index o = 0; o < 3; ++o) points(i, o) = draw.uniform(low[o], high[o]);
  };
  scatter(y);
  problem.y = y.colwise().reverse();
  problem.order = RowOrder::unrelated;
  return made;
}

double off(const Scene& scene, const Fitted& fitted) {
  const Vector& w = fitted.result().parameters;
  const double scale = w.size() == 7 ? w[3] : 1;
  return (scale * rotation(w.head(3)) - scene.linear).norm() / scene.linear.norm();
}

TEST(Registration, finds_any_rotation_among_outliers) {
  Draw draw(2641);
  for (const double degrees : {0.0, 60.0, 120.0, 180.0})
    for (const double outliers : {0.0, 0.5}) {
      const Scene made = scene(draw, 60, degrees, outliers, 0.02);
      const Fitted fitted = fit(made.problem, SpatialMap(MapKind::rigid), Auto{});
      SCOPED_TRACE(std::to_string(degrees) + " degrees, outliers " + std::to_string(outliers));
      EXPECT_LE(off(made, fitted), 0.03);
      EXPECT_EQ(name_of(fitted.context().chosen), "registration");
      EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::identified);
      EXPECT_NEAR(std::get<Registration>(fitted.context().chosen).outliers, outliers, 0.08);
      EXPECT_NEAR(fitted.result().noise_sd, 0.02, 0.008);
    }
}

TEST(Registration, finds_scales_and_any_linear_map) {
  Draw draw(2642);
  const Scene made = scene(draw, 60, 150, 0.3, 0.02, MapKind::similarity);
  const Fitted similar = fit(made.problem, SpatialMap(MapKind::similarity), Registration{});
  EXPECT_LE(off(made, similar), 0.03);
  const Fitted affine = fit(made.problem, SpatialMap(MapKind::affine), Registration{});
  const Eigen::Map<const Matrix> by_output(affine.result().parameters.data(), 4, 3);
  EXPECT_LE((by_output.bottomRows(3).transpose() - made.linear).norm(), 0.05);
}

/// Distances from the truth, in the reported standard errors, have a mean square near one.
TEST(Registration, has_standard_errors_of_the_right_size) {
  Draw draw(2643);
  double squares = 0;
  Index count = 0;
  for (int round = 0; round < 12; ++round) {
    const Scene made = scene(draw, 80, 40, 0.2, 0.05);
    const Fitted fitted = fit(made.problem, SpatialMap(MapKind::rigid), Registration{});
    const Vector errors = fitted.result().std_errors();
    ASSERT_EQ(errors.size(), 6);
    squares += (fitted.result().parameters - made.truth).cwiseQuotient(errors).squaredNorm();
    count += 6;
  }
  EXPECT_GT(squares / static_cast<double>(count), 0.5);
  EXPECT_LT(squares / static_cast<double>(count), 2);
}

TEST(Registration, does_not_choose_between_the_turns_of_a_square) {
  Problem problem;
  problem.z.resize(4, 2);
  problem.z << 1, 1, 1, -1, -1, -1, -1, 1;
  Matrix many(20, 2);
  for (Index k = 0; k < 5; ++k) many.middleRows(4 * k, 4) = static_cast<double>(k + 1) * problem.z;
  problem.z = many;
  problem.y = many * rotation(Vector::Constant(1, 0.3)).transpose();
  const Fitted fitted = fit(problem, SpatialMap(MapKind::rigid), Registration{});
  EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::not_identifiable);
  EXPECT_EQ(fitted.result().identifiable.alternatives.size(), 3U);
}

TEST(Registration, finds_nothing_between_points_that_have_nothing_in_common) {
  Draw draw(2644);
  Problem problem;
  problem.z = draw.normals(40, 3);
  problem.y = draw.normals(40, 3);
  const Fitted fitted = fit(problem, SpatialMap(MapKind::rigid), Registration{});
  EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::not_identifiable);
}

TEST(Registration, does_not_depend_on_threads) {
  Draw draw(2645);
  const Scene made = scene(draw, 50, 100, 0.3, 0.05);
  const auto with = [&](int threads) {
    Execution execution;
    execution.threads = threads;
    return fit(made.problem, SpatialMap(MapKind::rigid), Registration{}, execution).result().parameters;
  };
  EXPECT_EQ(with(1), with(3));
}

/// The share without a partner is part of the plan that pairs are made from.
TEST(Registration, keeps_what_it_found_in_its_file) {
  Draw draw(2647);
  const Scene made = scene(draw, 40, 70, 0.25, 0.02);
  for (const Estimator& method : {Estimator(Auto{}), Estimator(Registration{})}) {
    const Fitted fitted = fit(made.problem, SpatialMap(MapKind::rigid), method);
    const SavedFit saved = fit_from_json(to_json(fitted.result(), fitted.context()), "fit.json");
    EXPECT_EQ(std::get<Registration>(saved.context.chosen).outliers,
              std::get<Registration>(fitted.context().chosen).outliers);
    EXPECT_NEAR(fitted.result().plan.matched_share, 0.75, 0.08);
  }
}

TEST(Registration, refuses_evidence_that_it_does_not_read) {
  Draw draw(2646);
  Scene made = scene(draw, 20, 10, 0, 0.01);
  made.problem.known = {{0, 0}};
  EXPECT_EQ(complaint([&] { (void)fit(made.problem, SpatialMap(MapKind::rigid), Registration{}); }),
            "method registration links any rows of the two tables and does not read known pairs; leave them out, or "
            "choose method = entropic");
}

}  // namespace
}  // namespace unshuffle
