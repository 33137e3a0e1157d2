// The scalar path against the dense solver on the same cost, and its derivatives against finite differences.
#include <gtest/gtest.h>

#include "oracle/transport_support.hpp"
#include "transport/line_transport.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::Worst;

Matrix cost_of(const Vector& t, const Vector& s) {
  Matrix cost(t.size(), s.size());
  for (Index j = 0; j < s.size(); ++j) cost.col(j) = (t.array() - s[j]).square();
  return cost;
}

struct PositionGradient {
  Vector t, s;
};

/// Of a function of the cost (t_i - s_j)² whose derivative in it is w.
PositionGradient through_positions(const Matrix& w, const Vector& t, const Vector& s) {
  const Vector by_row = w.rowwise().sum(), by_column = w.colwise().sum();
  return {2 * (by_row.cwiseProduct(t) - w * s), 2 * (by_column.cwiseProduct(s) - w.transpose() * t)};
}

std::string describe(const MarginalPolicy& rows, const MarginalPolicy& columns, double relative) {
  return testing::name_of(rows) + "/" + testing::name_of(columns) + " epsilon 1e" +
         std::to_string(std::log10(relative));
}

TEST(LineAgreement, AgreesWithTheDenseSolverInObjectivePotentialsMarginalsAndGradient) {
  Draw draw(401);
  Worst objective("objective"), potential("potentials"), marginal("marginals"), gradient("gradient");
  for (double relative : {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0})
    for (const auto& policies : testing::policy_pairs(10)) {
      const auto& [rows, columns] = policies;
      const Index n = draw.integer(1, 90), m = draw.integer(1, 90);
      const Vector t = draw.normals(n),
                   s = draw.chance(0.3) ? Vector((2 * draw.normals(m)).array().round()) : draw.normals(m);
      const Vector a = draw.weights(n), b = draw.weights(m);
      const Matrix cost = cost_of(t, s);
      const double epsilon = relative * cost.maxCoeff();
      const std::string name = describe(rows, columns, relative) + " " + std::to_string(n) + "x" + std::to_string(m);
      SCOPED_TRACE(name);
      LineTransport line({.row_policy = rows, .column_policy = columns, .tolerance = 1e-11});
      Solver solver({.epsilon = epsilon, .relative = false, .rows = rows, .columns = columns, .tolerance = 1e-11});
      const LineReport report = line.solve(t, a, s, b, epsilon);
      const Solution solution = solver.solve(cost, a, b);
      EXPECT_TRUE(report.converged) << "line: " << report.message;
      EXPECT_TRUE(solution.converged()) << "dense: " << solution.message();
      if (!report.converged || !solution.converged()) continue;

      const double cost_size = std::max(std::abs(solution.transport_cost()), epsilon * solution.plan().sum());
      const double objective_error =
          std::max(std::abs(report.transport_cost - solution.transport_cost()) / cost_size,
                   std::abs(report.value - solution.value()) / (std::abs(solution.value()) + epsilon));
      EXPECT_LE(objective_error, 1e-8);
      objective.see(objective_error, name);

      // Up to a constant that one potential gains and the other loses; in units of ε, where a row holds mass.
      const Vector u = line.potential(Side::response), v = line.potential(Side::feature);
      const Vector du = u - solution.row_potential() / epsilon, dv = v - solution.column_potential() / epsilon;
      const Vector row_ratio = line.log_ratio(Side::response).array().exp();
      const Vector column_ratio = line.log_ratio(Side::feature).array().exp();
      Index fullest = 0;
      row_ratio.maxCoeff(&fullest);
      const double shift = du[fullest];
      const double potential_error =
          std::max((row_ratio.array() > 1e-6).select(du.array() - shift, 0).abs().maxCoeff(),
                   (column_ratio.array() > 1e-6).select(dv.array() + shift, 0).abs().maxCoeff());
      EXPECT_LE(potential_error, 1e-6);
      potential.see(potential_error, name);

      const double marginal_error =
          (a.cwiseProduct(row_ratio) - solution.plan().rowwise().sum()).lpNorm<1>() +
          (b.cwiseProduct(column_ratio) - solution.plan().colwise().sum().transpose()).lpNorm<1>();
      EXPECT_LE(marginal_error, 1e-8);
      marginal.see(marginal_error, name);

      for (Objective which : {Objective::transport, Objective::entropic}) {
        const PositionGradient dense = through_positions(solution.gradient(which), t, s);
        const Vector gt = a.cwiseProduct(line.gradient(Side::response, which));
        const Vector gs = b.cwiseProduct(line.gradient(Side::feature, which));
        const double size = dense.t.lpNorm<1>() + dense.s.lpNorm<1>() + epsilon * 1e-3;
        const double error = ((gt - dense.t).lpNorm<1>() + (gs - dense.s).lpNorm<1>()) / size;
        EXPECT_LE(error, 1e-7) << testing::name_of(which);
        gradient.see(error, testing::name_of(which) + " " + name);
      }
    }
}

struct Parametric {
  Vector t0, s0, a, b;
  Matrix jt, js;
  double epsilon;
  LineOptions options;

  [[nodiscard]] Vector t(const Vector& w) const { return t0 + jt * w; }
  [[nodiscard]] Vector s(const Vector& w) const { return s0 + js * w; }
  [[nodiscard]] Vector gradient(const Vector& w, Objective which) const {
    LineTransport line(options);
    (void)line.solve(t(w), a, s(w), b, epsilon);
    return jt.transpose() * a.cwiseProduct(line.gradient(Side::response, which)) +
           js.transpose() * b.cwiseProduct(line.gradient(Side::feature, which));
  }
  [[nodiscard]] double objective(const Vector& w, Objective which) const {
    LineTransport line(options);
    const LineReport report = line.solve(t(w), a, s(w), b, epsilon);
    return which == Objective::transport ? report.transport_cost : report.value;
  }
};

Parametric parametric(Draw& draw, double relative, const MarginalPolicy& rows, const MarginalPolicy& columns,
                      bool large) {
  Parametric at;
  const Index n = large ? draw.integer(250, 400) : draw.integer(5, 60),
              m = large ? draw.integer(250, 400) : draw.integer(5, 60);
  at.t0 = draw.normals(n);
  at.s0 = draw.normals(m);
  at.a = draw.weights(n);
  at.b = draw.weights(m);
  at.jt = draw.normals(n, 3);
  at.js = draw.normals(m, 3);
  at.epsilon = relative * cost_of(at.t0, at.s0).maxCoeff();
  at.options = {.row_policy = rows, .column_policy = columns, .tolerance = 1e-12};
  return at;
}

TEST(LineAgreement, TheGradientIsTheDerivativeOfTheObjectiveForEveryPolicy) {
  Draw draw(402);
  Worst worst("gradient against finite differences");
  for (double relative : {1e-4, 1e-3, 1e-2, 1e-1, 1.0})
    for (const auto& [rows, columns] : testing::policy_pairs(10)) {
      const Parametric at = parametric(draw, relative, rows, columns, draw.chance(0.15));
      const Vector w = Vector::Zero(3), direction = draw.normals(3).normalized();
      for (Objective which : {Objective::transport, Objective::entropic}) {
        const Vector g = at.gradient(w, which);
        auto central = [&](double h) {
          return (at.objective(h * direction, which) - at.objective(-h * direction, which)) / (2 * h);
        };
        const double h = 0.005 * std::sqrt(at.epsilon) * std::min(1.0, std::sqrt(relative) * 10);
        const double slope = (4 * central(h / 2) - central(h)) / 3,
                     error = std::abs(slope - g.dot(direction)) / g.norm();
        EXPECT_LE(error, 1e-6) << testing::name_of(which) << " " << describe(rows, columns, relative) << " n "
                               << at.t0.size();
        worst.see(error, testing::name_of(which) + " " + describe(rows, columns, relative));
      }
    }
}

// The entropic Hessian is exact; the transport one is a central difference in one scalar, good to about 1e-5.
TEST(LineAgreement, TheHessianIsTheDerivativeOfTheGradientForEveryPolicy) {
  Draw draw(403);
  Worst entropic("entropic Hessian"), transport("transport Hessian");
  for (double relative : {1e-3, 1e-2, 1e-1, 1.0})
    for (const auto& [rows, columns] : testing::policy_pairs(10)) {
      const Parametric at = parametric(draw, relative, rows, columns, draw.chance(0.15));
      const Vector w = Vector::Zero(3);
      for (Objective which : {Objective::transport, Objective::entropic}) {
        LineTransport line(at.options);
        (void)line.solve(at.t0, at.a, at.s0, at.b, at.epsilon);
        const Matrix hessian = line.hessian(at.jt, at.a, at.js, at.b, which);
        Matrix differences(3, 3);
        for (Index k = 0; k < 3; ++k) {
          auto central = [&](double h) -> Vector {
            return (at.gradient(h * Vector::Unit(3, k), which) - at.gradient(-h * Vector::Unit(3, k), which)) / (2 * h);
          };
          const double h = 0.005 * std::sqrt(at.epsilon) * std::min(1.0, std::sqrt(relative) * 10);
          differences.col(k) = (4 * central(h / 2) - central(h)) / 3;
        }
        const double error = (hessian - differences).norm() / differences.norm();
        EXPECT_LE(error, which == Objective::transport ? 1e-4 : 2e-6)
            << testing::name_of(which) << " " << describe(rows, columns, relative) << " n " << at.t0.size();
        (which == Objective::transport ? transport : entropic).see(error, describe(rows, columns, relative));
      }
    }
}

}  // namespace
}  // namespace unshuffle::transport
