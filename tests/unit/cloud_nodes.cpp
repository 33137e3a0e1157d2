// Nodes that stand for the points of a cloud.
#include "transport/cloud_nodes.hpp"

#include <gtest/gtest.h>

#include "oracle/transport_support.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;

TEST(CloudNodes, recombined_weights_keep_every_sum_and_few_rows) {
  Draw draw(2621);
  for (const Index functions : {1, 3, 20, 60}) {
    const Index rows = 7 * functions + 5;
    Matrix values = draw.normals(rows, functions);
    values.col(0).setOnes();
    const Vector before = draw.weights(rows), after = recombined(values, before);
    EXPECT_GE(after.minCoeff(), 0);
    EXPECT_LE((after.array() > 0).count(), functions);
    EXPECT_LE((values.transpose() * (after - before)).lpNorm<Eigen::Infinity>(), 1e-12) << functions;
  }
}

TEST(CloudNodes, recombined_weights_of_rows_that_depend_on_each_other) {
  Draw draw(2622);
  Matrix values(40, 6);  // a basis of three functions, twice
  values.leftCols(3) = draw.normals(40, 3);
  values.col(0).setOnes();
  values.rightCols(3) = values.leftCols(3);
  const Vector before = draw.weights(40), after = recombined(values, before);
  EXPECT_LE((after.array() > 0).count(), 6);
  EXPECT_LE((values.transpose() * (after - before)).lpNorm<Eigen::Infinity>(), 1e-12);
}

/// Sums of exp(-|s - t|²/ε) over nodes against those over all points, wherever t is.
TEST(CloudNodes, sum_kernels_as_all_points_do) {
  Draw draw(2623);
  for (const Index dimension : {1, 2, 3})
    for (const double accuracy : {1e-4, 1e-7, 1e-10}) {
      const Matrix points = draw.normals(3000, dimension);
      const PointCloud cloud(points, draw.weights(3000));
      const double epsilon = dimension == 3 ? 1000 : 3;
      const CloudNodes nodes = nodes_of(cloud, epsilon, accuracy);
      ASSERT_FALSE(nodes.from.empty());
      EXPECT_LT(nodes.points.size(), cloud.size());
      for (Index k = 0; k < nodes.points.size(); ++k)
        EXPECT_EQ(nodes.points.points().row(k), cloud.points().row(nodes.from[at(k)]));
      const auto sum_at = [&](const PointCloud& of, const Matrix& t) {
        return of.weights().dot(
            (-(of.points().rowwise() - t.row(0)).rowwise().squaredNorm() / epsilon).array().exp().matrix());
      };
      for (int k = 0; k < 20; ++k) {
        const Matrix t = draw.normals(1, dimension);
        EXPECT_NEAR(sum_at(nodes.points, t), sum_at(cloud, t), accuracy) << dimension;
      }
    }
}

TEST(CloudNodes, leave_alone_what_they_would_not_shorten) {
  Draw draw(2624);
  const PointCloud cloud(draw.normals(500, 3), testing::equal_weights(500));
  EXPECT_TRUE(nodes_of(cloud, 1e-2, 1e-10).from.empty());
}

}  // namespace
}  // namespace unshuffle::transport
