// The scalar path with compression against the same path on the points themselves, over every shape that is hard.
#include <gtest/gtest.h>

#include "oracle/transport_support.hpp"
#include "transport/line_transport.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::Worst;

const char* const shapes[] = {"normal", "Cauchy", "log-normal", "integers", "outlier", "two clusters"};

Vector shape(Draw& draw, Index kind, Index size, double heavy_share) {
  Vector x = draw.normals(size);
  switch (kind) {
    case 1:
      x = x.unaryExpr([&](double v) { return v / std::max(std::abs(draw.normal()), 1e-6); });
      break;
    case 2:
      x = x.array().exp();
      break;
    case 3:
      x = (3 * x).array().round();
      break;
    case 4:
      x[draw.integer(0, size - 1)] = 1e6;
      break;
    case 5:
      x.head(static_cast<Index>(heavy_share * static_cast<double>(size))).array() += 1000;
      break;
    default:
      break;
  }
  return x;
}

double largest_cost(const Vector& t, const Vector& s) {
  return std::pow(std::max(t.maxCoeff() - s.minCoeff(), s.maxCoeff() - t.minCoeff()), 2);
}

struct LineCase {
  Vector t, s, a, b;
  double epsilon;
  MarginalPolicy rows, columns;
  std::string name;
};

LineCase random_case(Draw& draw, int number) {
  LineCase one;
  const bool large = number % 130 == 129;
  const Index n = large ? 1000 : draw.integer(30, 200), m = draw.chance(0.3) ? n : large ? 800 : draw.integer(30, 200);
  const Index kind = number % 6;
  one.t = shape(draw, kind, n, 0.5);
  one.s = shape(draw, draw.chance(0.7) ? kind : draw.integer(0, 5), m, draw.uniform(0.45, 0.55));
  if (draw.chance(0.3)) one.s *= draw.log_uniform(0.01, 100);
  if (draw.chance(0.4)) one.a = draw.weights(n);
  if (draw.chance(0.4)) one.b = draw.weights(m);
  const double largest = largest_cost(one.t, one.s), relative = draw.log_uniform(1e-6, 1);
  one.epsilon = relative * largest;
  const auto pairs = testing::policy_pairs(largest);
  std::tie(one.rows, one.columns) = pairs[static_cast<std::size_t>(draw.chance(0.3) ? 0 : draw.integer(0, 15))];
  one.name = "case " + std::to_string(number) + " " + shapes[kind] + " " + std::to_string(n) + "x" + std::to_string(m) +
             " " + testing::name_of(one.rows) + "/" + testing::name_of(one.columns) + " epsilon 1e" +
             std::to_string(std::log10(relative)) + (one.a.size() > 0 ? " row weights" : "") +
             (one.b.size() > 0 ? " column weights" : "");
  return one;
}

/// Smooth functions of position and noise, as a model's Jacobian may be.
Matrix jacobian(Draw& draw, const Vector& x) {
  Matrix j(x.size(), 4);
  const Vector y = (x.array() - x.mean()) / std::max(1e-300, (x.array() - x.mean()).abs().maxCoeff());
  j << Vector::Ones(x.size()), y, (3 * y.array()).sin(), draw.normals(x.size());
  return j;
}

Vector weighted(const Vector& x, const Vector& weights) {
  return weights.size() > 0 ? Vector(x.cwiseProduct(weights)) : Vector(x / static_cast<double>(x.size()));
}

// The gradient is measured in norm, |Jᵀ(g - g')| against |J|ᵀ|g'|, for smooth columns of J and for a random one.
TEST(LineCompression, AgreesWithTheUncompressedSolveInObjectiveAndGradientOverHardShapes) {
  Worst cost("transport cost"), value("value"), transport_gradient("gradient of the transport cost"),
      entropic_gradient("gradient of the value"), claimed("claimed compression error");
  int compressed_problems = 0, unconverged = 0, cost_misses = 0, gradient_misses = 0;
  constexpr int problems = 522;
  for (int number = 0; number < problems; ++number) {
    Draw draw(30000 + static_cast<std::uint64_t>(number));
    const LineCase one = random_case(draw, number);
    SCOPED_TRACE(one.name);
    // Mass that is off by the tolerance may lie between clusters, where it costs a thousand times more than the rest;
    // so it is as small as rounding lets it be.
    const double tolerance = std::max(1e-11, 5e-17 * largest_cost(one.t, one.s) / one.epsilon);
    auto make = [&](bool compress) {
      return LineTransport(
          {.row_policy = one.rows, .column_policy = one.columns, .tolerance = tolerance, .compress = compress});
    };
    LineTransport small = make(true), full = make(false);
    const LineReport compressed = small.solve(one.t, one.a, one.s, one.b, one.epsilon);
    const LineReport reference = full.solve(one.t, one.a, one.s, one.b, one.epsilon);
    EXPECT_TRUE(compressed.converged) << "compressed: " << compressed.message;
    EXPECT_TRUE(reference.converged) << "reference: " << reference.message;
    if (!compressed.converged || !reference.converged) {
      ++unconverged;
      continue;
    }
    compressed_problems += compressed.compression_error > 0;
    claimed.see(compressed.compression_error, one.name);
    const double cost_error = std::abs(compressed.transport_cost - reference.transport_cost) /
                              std::max(std::abs(reference.transport_cost), 1e-3 * one.epsilon);
    const double value_error =
        std::abs(compressed.value - reference.value) / std::max(std::abs(reference.value), 1e-3 * one.epsilon);
    EXPECT_LE(cost_error, 1e-8);
    EXPECT_LE(value_error, 1e-8);
    cost_misses += !(cost_error <= 1e-8 && value_error <= 1e-8);
    cost.see(cost_error, one.name);
    value.see(value_error, one.name);
    for (Side side : {Side::response, Side::feature}) {
      const Matrix j = jacobian(draw, side == Side::response ? one.t : one.s);
      const Vector& weights = side == Side::response ? one.a : one.b;
      for (Objective which : {Objective::transport, Objective::entropic}) {
        const Vector g = weighted(small.gradient(side, which), weights);
        const Vector expected = weighted(full.gradient(side, which), weights);
        const double error =
            (j.transpose() * (g - expected)).norm() /
            std::max((j.cwiseAbs().transpose() * expected.cwiseAbs()).norm(), 1e-300);  // ties can leave no slope
        EXPECT_LE(error, 1e-8) << testing::name_of(which) << (side == Side::response ? " in t" : " in s");
        gradient_misses += !(error <= 1e-8);
        (which == Objective::transport ? transport_gradient : entropic_gradient).see(error, one.name);
      }
    }
  }
  EXPECT_GE(compressed_problems, problems / 3) << "too few problems were compressed for this test to say anything";
  std::printf("[ summary  ] %d problems, %d compressed, %d not converged, %d objectives and %d gradients beyond 1e-8\n",
              problems, compressed_problems, unconverged, cost_misses, gradient_misses);
}

}  // namespace
}  // namespace unshuffle::transport
