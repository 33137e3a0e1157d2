// The parts of the scalar path on their own: windows, quadrature, compression, and its edge cases.
#include <gtest/gtest.h>

#include "oracle/transport_support.hpp"
#include "transport/compress.hpp"
#include "transport/line.hpp"
#include "transport/line_transport.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::Worst;

Vector sorted(Vector x) {
  std::sort(x.begin(), x.end());
  return x;
}

/// Positions with clusters, ties and far outliers.
Vector positions(Draw& draw, Index size) {
  Vector x = draw.normals(size);
  if (draw.chance(0.3)) x = (2 * x).array().round();
  if (draw.chance(0.3)) x[draw.integer(0, size - 1)] = 1e4;
  if (draw.chance(0.3)) x.head(size / 2).array() += 50;
  return x;
}

TEST(TransportLineWindows, KeepEveryEntryAboveTheDepthForAnyPotential) {
  Draw draw(11);
  for (int k = 0; k < 400; ++k) {
    const LineMeasure sources{sorted(positions(draw, draw.integer(1, 60))), {}};
    const Index m = sources.size();
    const LineMeasure weighted{sources.position, draw.weights(m)};
    const Vector targets = sorted(positions(draw, draw.integer(1, 40)));
    const double epsilon = draw.log_uniform(1e-3, 1e3), depth = draw.uniform(1, 60);
    const Vector potential = draw.log_uniform(1e-2, 1e3) * draw.normals(m);  // neither smooth nor concave
    const Windows windows = windows_of(targets, weighted, potential, epsilon, depth);
    for (Index i = 0; i < targets.size(); ++i) {
      const auto row = static_cast<std::size_t>(i);
      const Eigen::ArrayXd entry = potential.array() + weighted.weight.array().log() -
                                   (targets[i] - weighted.position.array()).square() / epsilon;
      const double rounding = 1e-12 * (1 + entry.abs().maxCoeff());
      const double floor = entry.maxCoeff() - depth + rounding;
      ASSERT_LT(windows.begin[row], windows.end[row]);
      for (Index j = 0; j < m; ++j) {
        const bool inside = j >= windows.begin[row] && j < windows.end[row];
        ASSERT_TRUE(inside || entry[j] < floor) << "problem " << k << " row " << i << " source " << j;
      }
      if (i > 0) {
        ASSERT_GE(windows.begin[row], windows.begin[row - 1]);
        ASSERT_GE(windows.end[row], windows.end[row - 1]);
      }
    }
  }
}

TEST(TransportLineWindows, AreNoWiderThanTheDepthForConcavePotentials) {
  Draw draw(12);
  const LineMeasure sources{Vector::LinSpaced(400, -10, 10), testing::equal_weights(400)};
  const Windows windows = windows_of(Vector::LinSpaced(50, -5, 5), sources, Vector::Zero(400), 0.1, 10);
  for (std::size_t i = 0; i < 50; ++i)  // ±√(εδ) = ±1 at a spacing of 0.05
    EXPECT_LE(windows.end[i] - windows.begin[i], 42);
}

TEST(TransportLineWindows, LogSumsAreTheSumsOverAllSources) {
  Draw draw(13);
  Worst worst("log sums");
  for (int k = 0; k < 100; ++k) {
    const Vector s = sorted(positions(draw, draw.integer(1, 60)));
    const LineMeasure sources{s, draw.weights(s.size())};
    const Vector targets = sorted(positions(draw, 20)), potential = 3 * draw.normals(s.size());
    const double epsilon = draw.log_uniform(1e-2, 1e2);
    const Vector sums = log_sums(targets, sources, potential, epsilon);
    for (Index i = 0; i < targets.size(); ++i) {
      const Eigen::ArrayXd entry = potential.array() - (targets[i] - s.array()).square() / epsilon;
      const double largest = entry.maxCoeff();
      const double direct = largest + std::log((sources.weight.array() * (entry - largest).exp()).sum());
      EXPECT_NEAR(sums[i], direct, 1e-13 * (1 + std::abs(direct)));
      worst.see(std::abs(sums[i] - direct) / (1 + std::abs(direct)), "problem " + std::to_string(k));
    }
  }
}

TEST(TransportLineQuadrature, IsExactToDegreeTwicePMinusOneWithPositiveWeights) {
  Draw draw(14);
  Worst worst("quadrature moments");
  for (int k = 0; k < 300; ++k) {
    const Index n = draw.integer(1, 300);
    const int order = static_cast<int>(draw.integer(1, 14));
    Vector y = Vector::NullaryExpr(n, [&] { return draw.uniform(-1, 1); });
    if (draw.chance(0.4)) y = (y * static_cast<double>(draw.integer(1, 8))).array().round() / 8;  // ties
    const Vector w = draw.weights(n) * draw.log_uniform(1e-6, 1e3);
    const Quadrature rule = gauss_quadrature(y, w, order);
    ASSERT_LE(rule.node.size(), order);
    ASSERT_TRUE((rule.weight.array() >= 0).all());
    ASSERT_TRUE((rule.node.array() >= y.minCoeff() - 1e-12).all() && (rule.node.array() <= y.maxCoeff() + 1e-12).all());
    for (int degree = 0; degree < 2 * order; ++degree) {  // Chebyshev polynomials: bounded by one, so errors compare
      auto chebyshev = [&](double x) { return std::cos(degree * std::acos(std::clamp(x, -1.0, 1.0))); };
      const double measured = w.dot(y.unaryExpr(chebyshev)), ruled = rule.weight.dot(rule.node.unaryExpr(chebyshev));
      ASSERT_NEAR(measured, ruled, 2e-12 * w.sum()) << "n " << n << " order " << order << " degree " << degree;
      worst.see(std::abs(measured - ruled) / w.sum(), "order " + std::to_string(order));
    }
  }
}

TEST(TransportLineQuadrature, OfAFewDistinctPointsIsThosePoints) {
  const Quadrature rule = gauss_quadrature(Vector{{0.5, -0.5, 0.5, -0.5, 0.25}}, Vector{{1, 2, 3, 4, 5}}, 9);
  ASSERT_EQ(rule.node.size(), 3);
  EXPECT_LE((rule.node - Vector{{-0.5, 0.25, 0.5}}).norm(), 1e-12);
  EXPECT_LE((rule.weight - Vector{{6, 5, 4}}).norm(), 1e-11);
}

struct Compressed {
  Vector points, weights;
  CompressionRule rule;
  CompressedMeasure measure;
};

Compressed compressed(Draw& draw) {
  Compressed c;
  c.points = positions(draw, draw.integer(1, 3000));
  if (draw.chance(0.5)) c.weights = draw.weights(c.points.size());
  c.rule.cell_width = draw.log_uniform(0.01, 3);
  c.rule.box_width = 4 * c.rule.cell_width;
  if (draw.chance(0.3)) {
    c.rule.narrow_at = {-0.5, 0, 0.7};
    c.rule.box_factor = {0.5, 0.1, 0.8};
    c.rule.cell_factor = {0.4, 0.3, 0.9};
  }
  c.measure = CompressedMeasure(c.points, c.weights, c.rule);
  return c;
}

TEST(TransportLineCompression, KeepsMassAndMomentsWithAscendingPositiveNodes) {
  Draw draw(15);
  Worst mass("mass"), moments("moments of the nodes");
  for (int k = 0; k < 100; ++k) {
    const Compressed c = compressed(draw);
    const LineMeasure& nodes = c.measure.nodes();
    const Vector weights = c.weights.size() > 0 ? c.weights : testing::equal_weights(c.points.size());
    EXPECT_NEAR(nodes.weight.sum(), 1, 1e-12);
    mass.see(std::abs(nodes.weight.sum() - 1), "problem " + std::to_string(k));
    EXPECT_TRUE((nodes.weight.array() > 0).all());
    for (Index q = 1; q < nodes.size(); ++q) EXPECT_LT(nodes.position[q - 1], nodes.position[q]);
    // A function that varies on the scale of the boxes.
    const double scale = 1 / c.rule.box_width;
    auto f = [&](double x) { return std::cos(scale * x) + std::sin(0.5 * scale * x); };
    const double error = std::abs(weights.dot(c.points.unaryExpr(f)) - nodes.weight.dot(nodes.position.unaryExpr(f)));
    EXPECT_LE(error, 1e-11);
    moments.see(error, "problem " + std::to_string(k));
  }
}

TEST(TransportLineCompression, InterpolatesPolynomialsExactlyAndSpreadIsItsTranspose) {
  Draw draw(16);
  Worst exactness("interpolation"), transpose("transpose");
  for (int k = 0; k < 100; ++k) {
    const Compressed c = compressed(draw);
    const double scale = 1 / c.points.cwiseAbs().maxCoeff();
    const Vector coefficients = draw.normals(8);
    auto polynomial = [&](double x) {
      double y = 0;
      for (double coefficient : coefficients) y = y * x * scale + coefficient;
      return y;
    };
    const Vector exact = c.points.unaryExpr(polynomial);
    const Vector back = c.measure.interpolate(c.measure.grid().unaryExpr(polynomial));
    const double error = (back - exact).lpNorm<Eigen::Infinity>() / coefficients.lpNorm<1>();
    EXPECT_LE(error, 1e-13);
    exactness.see(error, "problem " + std::to_string(k));

    const Vector a = draw.normals(c.points.size()), g = draw.normals(c.measure.grid().size());
    const double left = c.measure.spread(a).dot(g), right = a.dot(c.measure.interpolate(g));
    const double size = a.cwiseAbs().dot(c.measure.interpolate(g).cwiseAbs());
    EXPECT_NEAR(left, right, 1e-12 * size);
    transpose.see(std::abs(left - right) / size, "problem " + std::to_string(k));
  }
}

TEST(TransportLineCompression, DoesNotDependOnTheOrderOfThePoints) {
  Draw draw(17);
  for (int k = 0; k < 50; ++k) {
    const Compressed c = compressed(draw);
    const std::vector<Index> order = draw.permutation(c.points.size());
    const CompressedMeasure shuffled(c.points(order), c.weights.size() > 0 ? Vector(c.weights(order)) : Vector(),
                                     c.rule);
    ASSERT_EQ(shuffled.nodes().size(), c.measure.nodes().size());
    ASSERT_EQ(shuffled.grid().size(), c.measure.grid().size());
    const double range = c.points.cwiseAbs().maxCoeff();
    EXPECT_LE((shuffled.grid() - c.measure.grid()).lpNorm<Eigen::Infinity>(), 1e-14 * range);
    // Nodes of nearly vanishing weight may move; what they integrate may not.
    EXPECT_NEAR(shuffled.nodes().weight.dot(shuffled.nodes().position),
                c.measure.nodes().weight.dot(c.measure.nodes().position), 1e-12 * range);
    const Vector g = draw.normals(c.measure.grid().size());
    const Vector here = c.measure.interpolate(g), there = shuffled.interpolate(g);
    EXPECT_LE((here(order) - there).lpNorm<Eigen::Infinity>(), 1e-10 * here.lpNorm<Eigen::Infinity>());
  }
}

TEST(TransportLineCompression, LeavesFewPointsAsTheyAre) {
  const Vector points{{3, 1, 2, 1}};
  CompressionRule rule;
  rule.box_width = 0.4;
  rule.cell_width = 0.1;
  const CompressedMeasure measure(points, Vector(), rule);
  EXPECT_TRUE(measure.exact());
  EXPECT_EQ(measure.nodes().position, (Vector{{1, 2, 3}}));
  EXPECT_EQ(measure.nodes().weight, (Vector{{0.5, 0.25, 0.25}}));
  EXPECT_EQ(measure.interpolate(Vector{{10, 20, 30}}), (Vector{{30, 10, 20, 10}}));
}

// ---- Edge cases of the whole path -----------------------------------------------------------------------------------

double mean(const Vector& x) { return x.mean(); }

TEST(TransportLineEdges, ASingleRowTakesEverything) {
  Draw draw(18);
  const Vector s = draw.normals(500);
  for (double epsilon : {1e-6, 1e-2, 1e2}) {
    LineTransport line({});
    const LineReport report = line.solve(Vector::Constant(1, 0.3), Vector(), s, Vector(), epsilon);
    EXPECT_TRUE(report.converged) << report.message;
    EXPECT_NEAR(report.transport_cost, (s.array() - 0.3).square().mean(), 1e-10);
    EXPECT_NEAR(line.gradient(Side::response, Objective::transport)[0], 2 * (0.3 - mean(s)), 1e-9);
    LineTransport other({});
    const LineReport swapped = other.solve(s, Vector(), Vector::Constant(1, 0.3), Vector(), epsilon);
    EXPECT_TRUE(swapped.converged) << swapped.message;
    EXPECT_NEAR(swapped.transport_cost, report.transport_cost, 1e-10);
    EXPECT_NEAR(swapped.value, report.value, 1e-10);
  }
}

TEST(TransportLineEdges, PointsThatAreAllEqualCostTheirDistance) {
  for (const auto& [rows, columns] : testing::policy_pairs(1)) {
    SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns));
    LineTransport line({.row_policy = rows, .column_policy = columns});
    const LineReport same = line.solve(Vector::Constant(200, 2.5), Vector(), Vector::Constant(100, 2.5), Vector(), 0.1);
    EXPECT_TRUE(same.converged) << same.message;
    EXPECT_NEAR(same.transport_cost, 0, 1e-12);
    EXPECT_NEAR(same.mass, 1, 1e-9);
    EXPECT_LE(line.gradient(Side::response, Objective::transport).norm(), 1e-10);
    EXPECT_TRUE(line.gradient(Side::feature, Objective::entropic).allFinite());
    line.forget();
    const LineReport apart =
        line.solve(Vector::Constant(200, 1.0), Vector(), Vector::Constant(100, 0.0), Vector(), 0.1);
    EXPECT_TRUE(apart.converged) << apart.message;
    EXPECT_NEAR(apart.transport_cost, apart.mass, 1e-9);
  }
}

TEST(TransportLineEdges, ClustersFarApartWithBalancedMassConvergeToTheClustersOwnSolutions) {
  Draw draw(19);
  Worst worst("disconnected clusters");
  const Vector t = draw.normals(300), s = 0.7 * draw.normals(400);
  auto twice = [](const Vector& x, double apart) {
    Vector both(2 * x.size());
    both << x, x.array() + apart;
    return both;
  };
  for (bool compress : {true, false})
    for (double epsilon : {1e-3, 1e-1})
      for (double apart : {1e2, 1e4, 1e6}) {
        if (epsilon < 1e-14 * apart * apart) continue;  // costs would have no digits left
        SCOPED_TRACE(apart);
        LineTransport one({.compress = compress}), two({.compress = compress});
        const LineReport single = one.solve(t, Vector(), s, Vector(), epsilon);
        const LineReport both = two.solve(twice(t, apart), Vector(), twice(s, apart), Vector(), epsilon);
        EXPECT_TRUE(both.converged) << both.message;
        // Positions near `apart` keep that many digits fewer.
        const double rounding = 1e-9 + 1e-14 * apart;
        EXPECT_NEAR(both.transport_cost, single.transport_cost, rounding);
        for (Objective objective : {Objective::transport, Objective::entropic}) {
          const Vector g = one.gradient(Side::feature, objective), h = two.gradient(Side::feature, objective);
          const double error =
              std::max((h.head(400) - g).lpNorm<Eigen::Infinity>(), (h.tail(400) - g).lpNorm<Eigen::Infinity>());
          EXPECT_LE(error, 1e-7 + 1e-12 * apart / std::sqrt(epsilon));
          worst.see(error, "apart " + std::to_string(apart) + " epsilon " + std::to_string(epsilon));
        }
      }
}

TEST(TransportLineEdges, AStartFromTheLastSolutionGivesTheSameAnswerAsAColdOne) {
  Draw draw(20);
  const Vector t = draw.normals(600), s = draw.normals(500), direction = draw.normals(500);
  for (const auto& [rows, columns] : testing::policy_pairs(1)) {
    SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns));
    // The value moves with the marginal error times the potentials, so ask for less of it than is compared.
    const LineOptions options{.row_policy = rows, .column_policy = columns, .tolerance = 1e-11};
    LineTransport warm(options);
    (void)warm.solve(t, Vector(), s, Vector(), 1e-2);
    for (double size : {1e-3, 1e-1, 3.0}) {
      const Vector moved = s + size * direction;
      LineTransport cold(options);
      const LineReport from_last = warm.solve(t, Vector(), moved, Vector(), 1e-2);
      const LineReport from_nothing = cold.solve(t, Vector(), moved, Vector(), 1e-2);
      EXPECT_TRUE(from_last.converged && from_nothing.converged) << from_last.message << from_nothing.message;
      EXPECT_NEAR(from_last.transport_cost, from_nothing.transport_cost, 1e-8);
      EXPECT_NEAR(from_last.value, from_nothing.value, 1e-9);
      EXPECT_LE(
          (warm.gradient(Side::feature, Objective::transport) - cold.gradient(Side::feature, Objective::transport))
              .lpNorm<Eigen::Infinity>(),
          1e-6);
    }
  }
}

}  // namespace
}  // namespace unshuffle::transport
