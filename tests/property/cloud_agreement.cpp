// Transport between clouds of points against the dense solver, which forms the cost: every policy, one to eight
// coordinates, any ε; and its gradient against finite differences.
#include <gtest/gtest.h>
#include <omp.h>

#include "oracle/transport_support.hpp"
#include "transport/cloud_transport.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::name_of;
using testing::policy_pairs;
using testing::Worst;

struct Clouds {
  Matrix t, s;
  Vector row_weights, column_weights;

  [[nodiscard]] Matrix costs() const {
    Matrix cost(t.rows(), s.rows());
    for (Index j = 0; j < s.rows(); ++j) cost.col(j) = (t.rowwise() - s.row(j)).rowwise().squaredNorm();
    return cost;
  }
};

/// Gaussian, or in clumps, or on a grid with equal points; shifted away from the origin.
Matrix random_points(Draw& draw, Index n, Index dimension) {
  Matrix points = draw.normals(n, dimension);
  const double kind = draw.uniform();
  if (kind < 0.2) points = points.array().round();
  if (kind > 0.8)
    for (Index i = 0; i < n; ++i) points.row(i) = 0.1 * points.row(i).array() + static_cast<double>(i % 3);
  return points.rowwise() + 3 * draw.normals(1, dimension).row(0);
}

Clouds random_clouds(Draw& draw, Index least, Index most) {
  const Index n = draw.integer(least, most), m = draw.integer(least, most), dimension = draw.integer(1, 4);
  Clouds clouds{random_points(draw, n, dimension), Matrix(), testing::equal_weights(n), testing::equal_weights(m)};
  clouds.s = random_points(draw, m, dimension);
  clouds.s = clouds.s.rowwise() + (clouds.t.colwise().mean() - clouds.s.colwise().mean());
  if (draw.chance(0.5)) clouds.row_weights = draw.weights(n);
  if (draw.chance(0.5)) clouds.column_weights = draw.weights(m);
  return clouds;
}

CloudReport solve(CloudTransport& transport, const Clouds& clouds, double epsilon) {
  return transport.solve({clouds.t, clouds.row_weights}, {clouds.s, clouds.column_weights}, epsilon);
}

/// Σ W_ij ∂C_ij in t and in s.
std::pair<Matrix, Matrix> forces(const Clouds& clouds, const Matrix& w) {
  const Vector rows = w.rowwise().sum(), columns = w.colwise().sum();
  return {2 * (rows.asDiagonal() * clouds.t - w * clouds.s),
          2 * (columns.asDiagonal() * clouds.s - w.transpose() * clouds.t)};
}

void compare(const Clouds& clouds, const MarginalPolicies& policies, double epsilon, Worst& worst, bool nodes = false) {
  CloudTransport transport({.policies = policies, .response_cost = {}, .tolerance = 1e-11});
  const CloudReport report = solve(transport, clouds, epsilon);
  const Solution dense = transport::solve(
      clouds.costs(), clouds.row_weights, clouds.column_weights,
      {.epsilon = epsilon, .relative = false, .rows = policies.rows, .columns = policies.columns, .tolerance = 1e-11});
  const std::string name = name_of(policies.rows) + "/" + name_of(policies.columns) + " " +
                           std::to_string(clouds.t.rows()) + "x" + std::to_string(clouds.s.rows()) + "x" +
                           std::to_string(clouds.t.cols()) + " epsilon " + std::to_string(epsilon);
  SCOPED_TRACE(name);
  EXPECT_EQ(report.converged, dense.converged()) << report.message << dense.message();
  const double size = std::abs(dense.value()) + epsilon;
  double error =
      std::max(std::abs(report.transport_cost - dense.transport_cost()), std::abs(report.value - dense.value())) / size;
  for (const Objective objective : {Objective::entropic, Objective::transport}) {
    const auto [on_t, on_s] = forces(clouds, dense.gradient(objective));
    const Matrix here_t = transport.gradient(Side::response, objective),
                 here_s = transport.gradient(Side::feature, objective);
    error =
        std::max({error, (here_t - on_t).norm() / (on_t.norm() + 1e-3), (here_s - on_s).norm() / (on_s.norm() + 1e-3)});
  }
  EXPECT_LE(error, 1e-7);
  EXPECT_LE(report.compression_error, 1e-10);
  EXPECT_TRUE(report.compression_error > 0 || !nodes) << "no nodes";
  worst.see(error, name);
}

TEST(CloudAgreement, SmallProblemsOfEveryPolicy) {
  Draw draw(2601);
  Worst worst("clouds against dense, small");
  for (int round = 0; round < 25; ++round)
    for (const auto& [rows, columns] : policy_pairs(4)) {
      const Clouds clouds = random_clouds(draw, 2, 60);
      compare(clouds, of_sizes(rows, columns, clouds.t.rows(), clouds.s.rows()), draw.log_uniform(2e-2, 5), worst);
    }
}

TEST(CloudAgreement, SeveralBoxes) {
  Draw draw(2602);
  Worst worst("clouds against dense, several boxes");
  for (const auto& [rows, columns] : policy_pairs(4)) {
    const Clouds clouds = random_clouds(draw, 100, 220);
    compare(clouds, of_sizes(rows, columns, clouds.t.rows(), clouds.s.rows()), draw.log_uniform(2e-2, 1), worst);
  }
}

/// Where points are dense for ε, and nodes stand for them.
TEST(CloudAgreement, NodesForPoints) {
  Draw draw(2606);
  Worst worst("clouds against dense, nodes for points");
  for (const auto& [rows, columns] : policy_pairs(40)) {
    Clouds clouds{draw.normals(draw.integer(330, 360), 2), draw.normals(draw.integer(330, 360), 2), {}, {}};
    clouds.row_weights = draw.weights(clouds.t.rows());
    clouds.column_weights = draw.weights(clouds.s.rows());
    const double epsilon = draw.log_uniform(30, 90);
    const MarginalPolicies policies = of_sizes(rows, columns, clouds.t.rows(), clouds.s.rows());
    compare(clouds, policies, epsilon, worst, true);
  }
}

// A cost of a row's own mass is one of all its pairs; the cost <C, Γ> does not contain it.
TEST(CloudAgreement, ResponsesThatPayForTheirMass) {
  Draw draw(2603);
  for (int round = 0; round < 20; ++round) {
    const Clouds clouds = random_clouds(draw, 20, 90);
    const double epsilon = draw.log_uniform(5e-2, 2);
    const MarginalPolicies policies{Sampled{draw.chance(0.5) ? 1.4 : 0.8}, Exact{}};
    const Vector law = draw.normals(clouds.t.rows());
    CloudTransport transport({.policies = policies, .response_cost = law, .tolerance = 1e-11});
    const CloudReport report = solve(transport, clouds, epsilon);
    const Solution dense =
        transport::solve(clouds.costs().colwise() + epsilon * law, clouds.row_weights, clouds.column_weights,
                         {.epsilon = epsilon, .relative = false, .rows = policies.rows, .tolerance = 1e-11});
    const double size = std::abs(dense.value()) + epsilon;
    EXPECT_NEAR(report.value, dense.value(), 1e-8 * size);
    EXPECT_NEAR(report.transport_cost, dense.plan().cwiseProduct(clouds.costs()).sum(), 1e-8 * size);
    const auto [on_t, on_s] =
        forces(clouds, dense.gradient() - epsilon * dense.pull_back(law.replicate(1, clouds.s.rows())));
    EXPECT_LE((transport.gradient(Side::response, Objective::transport) - on_t).norm(), 1e-7 * (on_t.norm() + 1e-3));
    EXPECT_LE((transport.gradient(Side::feature, Objective::transport) - on_s).norm(), 1e-7 * (on_s.norm() + 1e-3));
  }
}

/// Where nearly every row has a partner of its own, S is almost nothing but rounding.
TEST(CloudAgreement, AtSmallEpsilon) {
  Draw draw(2605);
  Worst worst("clouds against dense, small epsilon");
  for (const double epsilon : {1e-2, 1e-3, 1e-4, 1e-5}) {
    Clouds clouds = random_clouds(draw, 100, 140);
    clouds.t = draw.normals(120, 3);
    clouds.s = draw.normals(120, 3);
    clouds.row_weights = clouds.column_weights = testing::equal_weights(120);
    CloudTransport transport({.policies = {}, .response_cost = {}});
    const CloudReport report = solve(transport, clouds, epsilon);
    const Solution dense = transport::solve(clouds.costs(), {.epsilon = epsilon, .relative = false});
    EXPECT_TRUE(report.converged) << report.message;
    const double error = std::abs(report.transport_cost - dense.transport_cost()) / dense.transport_cost();
    EXPECT_LE(error, 1e-7);
    worst.see(error, std::to_string(epsilon));
    const auto [on_t, on_s] = forces(clouds, dense.gradient());
    EXPECT_LE((transport.gradient(Side::response, Objective::transport) - on_t).norm(), 1e-5 * on_t.norm());
  }
}

/// The sums of a solution that starts far from its last one, at a small ε, when points have moved.
TEST(CloudAgreement, WarmStartsFindWhatColdOnesFind) {
  Draw draw(2604);
  for (int round = 0; round < 10; ++round) {
    Clouds clouds = random_clouds(draw, 60, 200);
    const double epsilon = draw.log_uniform(1e-3, 1e-1);
    CloudTransport warm({.policies = {}, .response_cost = {}}), cold({.policies = {}, .response_cost = {}});
    (void)solve(warm, clouds, epsilon);
    clouds.s = (draw.uniform(0.8, 1.3) * clouds.s).rowwise() + 0.5 * draw.normals(1, clouds.s.cols()).row(0);
    const CloudReport a = solve(warm, clouds, epsilon), b = solve(cold, clouds, epsilon);
    EXPECT_TRUE(a.converged) << a.message;
    EXPECT_TRUE(b.converged) << b.message;
    EXPECT_NEAR(a.transport_cost, b.transport_cost, 1e-6 * b.transport_cost);
  }
}

}  // namespace
}  // namespace unshuffle::transport
