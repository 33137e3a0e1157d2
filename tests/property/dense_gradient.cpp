// Derivatives of the dense solver's two objectives against finite differences, for every pair of policies.
#include <gtest/gtest.h>

#include "oracle/transport_support.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::Worst;

/// Multiples of 2^-digits: sums and differences of such numbers are exact, so finite differences see no rounding of C.
Matrix rounded(const Matrix& x, int digits) {
  return (x * std::ldexp(1.0, digits)).array().round() * std::ldexp(1.0, -digits);
}

struct Setting {
  Matrix cost, direction;
  Vector a, b;
  SolverOptions options;

  [[nodiscard]] double objective(const Matrix& c, Objective which) const {
    const Solution solution = solve(c, a, b, options);
    return which == Objective::transport ? solution.transport_cost() : solution.value();
  }
  [[nodiscard]] double central(Objective which, double step) const {
    return (objective(cost + step * direction, which) - objective(cost - step * direction, which)) / (2 * step);
  }
  /// Central differences at h and h/2, extrapolated.
  [[nodiscard]] double slope(Objective which, double h) const {
    return (4 * central(which, h / 2) - central(which, h)) / 3;
  }
  /// Central differences of order eight. They reach four times as far, so rounding of F counts half as much.
  [[nodiscard]] double wide_slope(Objective which, double h) const {
    const auto at = [&](int steps) { return central(which, steps * h); };
    return (56 * at(1) - 28 * at(2) + 8 * at(3) - at(4)) / 35;
  }
  /// How far an analytic slope is from difference quotients, by the wide ones if the narrow ones are not near enough:
  /// rounding, which depends on the processor, spoils the narrow ones, and a ball that begins to bind on the way the
  /// wide.
  [[nodiscard]] double distance(Objective which, double h, double analytic, double enough) const {
    const double narrow = std::abs(slope(which, h) - analytic);
    return narrow <= enough ? narrow : std::min(narrow, std::abs(wide_slope(which, h) - analytic));
  }
};

Setting random_setting(Draw& draw, double relative, const MarginalPolicy& rows, const MarginalPolicy& columns) {
  Setting at;
  const Index n = draw.integer(2, 14), m = draw.integer(2, 14);
  at.cost.resize(n, m);
  if (draw.chance(0.5)) {
    const Vector t = draw.normals(n), s = draw.normals(m);
    for (Index j = 0; j < m; ++j) at.cost.col(j) = (t.array() - s[j]).square();
  } else {
    at.cost = draw.normals(n, m).cwiseAbs2();
  }
  // Ties of the order of ε, so that plans stay soft when ε is small.
  at.cost = at.cost / at.cost.maxCoeff();
  if (relative < 1e-2) {
    const double coarse = 8;
    at.cost = (at.cost * coarse).array().round() / coarse;
    at.cost += relative * draw.normals(n, m);
  }
  at.cost = rounded(at.cost, 46);
  at.direction = rounded(draw.normals(n, m), 8);
  at.a = draw.weights(n);
  at.b = draw.weights(m);
  at.options = {.epsilon = relative, .relative = false, .rows = rows, .columns = columns, .tolerance = 1e-13};
  return at;
}

// F is smooth in C on the scale ε, so h = ε/64 (a power of two) and either extrapolation leave a truncation error near
// 1e-9.
// Exponents C/ε are rounded to 1e-16/ε: F, whose plan reacts within ε, then carries 1e-16 and its difference quotient
// 1e-14/ε. Under a ball, and of sampled sums, the rounding moves the marginals themselves, so F carries 1e-16/ε and the
// quotient 1e-14/ε². The finite differences can show 1e-6 down to ε = 1e-6 without and 1e-4 with such sums; below, the
// bound follows that rounding, and with such sums they show nothing below 1e-6.
double attainable(double epsilon, bool yields) {
  return std::max(1e-6, yields ? 5e-16 / (epsilon * epsilon) : 1e-12 / epsilon);
}

TEST(DenseGradient, AgreesWithFiniteDifferencesForEveryPolicyOverElevenDecadesOfEpsilon) {
  Draw draw(201);
  Worst sharp("gradient, share of 1e-6"), loose("gradient where rounding decides, share of its bound");
  for (double relative : {1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8})
    for (const auto& [rows, columns] : testing::policy_pairs(1))
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto yields_in_epsilon = [](const MarginalPolicy& policy) {
          return std::holds_alternative<Ball>(policy) || std::holds_alternative<Sampled>(policy);
        };
        const bool yields = yields_in_epsilon(rows) || yields_in_epsilon(columns);
        if (yields && relative < 1e-6) continue;
        const Setting at = random_setting(draw, relative, rows, columns);
        const std::string name = testing::name_of(rows) + "/" + testing::name_of(columns) + " " +
                                 std::to_string(at.cost.rows()) + "x" + std::to_string(at.cost.cols()) + " epsilon 1e" +
                                 std::to_string(std::log10(relative));
        SCOPED_TRACE(name);
        const Solution solution = solve(at.cost, at.a, at.b, at.options);
        const double h = std::exp2(std::floor(std::log2(relative / 64)));
        for (Objective which : {Objective::transport, Objective::entropic}) {
          const Matrix w = solution.gradient(which);
          const double analytic = w.cwiseProduct(at.direction).sum();
          const double size = std::max(std::abs(analytic), 0.1 * w.cwiseProduct(at.direction).cwiseAbs().sum());
          // A plan that rounding leaves δ off its marginals leaves F off by δ and its difference quotient by δ/h.
          const double bound = std::max(attainable(relative, yields), 2 * solution.marginal_error() / h);
          const double error = at.distance(which, h, analytic, bound * size) / size;
          EXPECT_LE(error, bound) << testing::name_of(which) << " " << solution.message();
          (bound <= 1e-6 ? sharp : loose).see(error / bound, testing::name_of(which) + " " + name);
        }
      }
}

TEST(DenseGradient, OfAnyFunctionOfThePlanAgreesWithFiniteDifferencesForEveryPolicy) {
  Draw draw(203);
  Worst worst("pull_back, share of its bound");
  for (double relative : {1e2, 1.0, 1e-1, 1e-2, 1e-3})
    for (const auto& [rows, columns] : testing::policy_pairs(1)) {
      const Setting at = random_setting(draw, relative, rows, columns);
      const std::string name =
          testing::name_of(rows) + "/" + testing::name_of(columns) + " epsilon " + std::to_string(relative);
      SCOPED_TRACE(name);
      const Matrix cotangent = draw.normals(at.cost.rows(), at.cost.cols());
      const Solution solution = solve(at.cost, at.a, at.b, at.options);
      const Matrix gradient = solution.pull_back(cotangent);
      auto function = [&](double step) {
        const Solution moved = solve(at.cost + step * at.direction, at.a, at.b, at.options);
        return moved.plan().cwiseProduct(cotangent).sum();
      };
      auto central = [&](double h) { return (function(h) - function(-h)) / (2 * h); };
      const double h = std::exp2(std::floor(std::log2(relative / 64)));
      const double slope = (4 * central(h / 2) - central(h)) / 3;
      const double analytic = gradient.cwiseProduct(at.direction).sum();
      const double size = std::max(std::abs(analytic), 0.1 * gradient.cwiseProduct(at.direction).cwiseAbs().sum());
      const double bound = std::max(1e-6, (2 * solution.marginal_error() + 1e-14 / relative) / (h * size));
      const double error = std::abs(slope - analytic) / size;
      EXPECT_LE(error, bound);
      worst.see(error / bound, name);
    }
}

TEST(DenseGradient, OfThePlanRefusesACotangentOfAnotherShape) {
  const Solution solution = solve(Matrix::Random(3, 2));
  EXPECT_THROW((void)solution.pull_back(Matrix::Zero(2, 3)), InvalidInput);
}

// When ε and every penalty grow by a common factor λ, the envelope theorem says dV/dλ = V - F.
TEST(DenseGradient, TheTransportCostIsTheValueMinusItsDerivativeInACommonFactorOfEpsilonAndPenalties) {
  Draw draw(202);
  Worst worst("F = V - dV/dλ");
  for (double relative : {1e2, 1.0, 1e-1, 1e-2, 1e-4, 1e-6})
    for (const auto& [rows, columns] : testing::policy_pairs(1)) {
      const Setting at = random_setting(draw, relative, rows, columns);
      SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns) + " epsilon " + std::to_string(relative));
      auto scaled = [](MarginalPolicy policy, double factor) {
        if (auto* kl = std::get_if<KullbackLeibler>(&policy)) kl->strength *= factor;
        return policy;
      };
      auto value = [&](double factor) {
        Setting moved = at;
        moved.options.epsilon *= factor;
        moved.options.rows = scaled(at.options.rows, factor);
        moved.options.columns = scaled(at.options.columns, factor);
        return moved.objective(moved.cost, Objective::entropic);
      };
      auto central = [&](double h) { return (value(1 + h) - value(1 - h)) / (2 * h); };
      const double h = 0x1p-9, slope = (4 * central(h / 2) - central(h)) / 3;
      const double v = value(1), f = at.objective(at.cost, Objective::transport);
      const double error = std::abs(f - (v - slope)) / (std::abs(f) + std::abs(v) + std::abs(slope));
      EXPECT_LE(error, std::max(1e-8, 1e-13 / relative));
      worst.see(error,
                testing::name_of(rows) + "/" + testing::name_of(columns) + " epsilon " + std::to_string(relative));
    }
}

}  // namespace
}  // namespace unshuffle::transport
