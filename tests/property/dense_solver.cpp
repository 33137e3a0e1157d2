// Properties of the dense transport solver over random problems of every shape, scale, epsilon and pair of policies.
#include <gtest/gtest.h>

#include "oracle/certificate.hpp"
#include "oracle/transport_support.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::Worst;

struct Case {
  Matrix cost;
  Vector a, b;
  SolverOptions options;
  std::string name;
};

/// Sizes 1..40 with 1 favoured, ties, duplicate rows, constant costs, scales 1e-6..1e6.
Matrix random_cost(Draw& draw) {
  const Index n = draw.chance(0.1) ? 1 : draw.integer(1, 40), m = draw.chance(0.1) ? 1 : draw.integer(1, 40);
  Matrix cost = draw.normals(n, m).cwiseAbs2();
  switch (draw.integer(0, 5)) {
    case 0:  // points in the plane
      for (Index k = 0; k < 2; ++k) {
        const Vector t = draw.normals(n), s = draw.normals(m);
        if (k == 0) cost.setZero();
        for (Index j = 0; j < m; ++j) cost.col(j).array() += (t.array() - s[j]).square();
      }
      break;
    case 1:
      cost = (2 * cost).array().round();
      break;  // ties
    case 2:
      cost.setConstant(draw.chance(0.5) ? 0 : 1.5);
      break;  // nothing to choose
    case 3:
      for (Index i = 1; i < n; i += 2) cost.row(i) = cost.row(0);
      break;  // duplicates
    case 4:
      cost.row(draw.integer(0, n - 1)).array() += 10;
      break;  // an outlier row
    default:
      break;
  }
  return cost * draw.log_uniform(1e-6, 1e6);
}

std::vector<Case> cases(std::uint64_t seed, int count, double least_epsilon) {
  Draw draw(seed);
  std::vector<Case> all;
  for (int k = 0; k < count; ++k) {
    Case one;
    one.cost = random_cost(draw);
    one.a = draw.chance(0.5) ? draw.weights(one.cost.rows()) : testing::equal_weights(one.cost.rows());
    one.b = draw.chance(0.5) ? draw.weights(one.cost.cols()) : testing::equal_weights(one.cost.cols());
    const double largest = one.cost.maxCoeff() > 0 ? one.cost.maxCoeff() : 1;
    const auto pairs = testing::policy_pairs(largest);
    const auto& [rows, columns] = pairs[static_cast<std::size_t>(k) % pairs.size()];
    one.options = {.epsilon = draw.log_uniform(least_epsilon, 1e3), .rows = rows, .columns = columns};
    one.name = "case " + std::to_string(k) + " " + testing::name_of(rows) + "/" + testing::name_of(columns) + " " +
               std::to_string(one.cost.rows()) + "x" + std::to_string(one.cost.cols()) + " scale " +
               std::to_string(largest) + " epsilon 1e" + std::to_string(std::log10(one.options.epsilon));
    all.push_back(std::move(one));
  }
  return all;
}

TEST(DenseSolver, ConvergesAndIsAPlanOfItsPotentialsWithTheMarginalsItClaims) {
  Worst marginal("marginal error / tolerance"), formula("plan against its potentials"), cost_error("transport cost"),
      value_error("value");
  int unconverged = 0;
  for (const Case& one : cases(101, 320, 1e-8)) {
    SCOPED_TRACE(one.name);
    Solver solver(one.options);
    const Solution solution = solver.solve(one.cost, one.a, one.b);
    if (!solution.converged()) {
      ++unconverged;
      EXPECT_FALSE(solution.message().empty());
      ADD_FAILURE() << solution.message();
      continue;
    }
    const Vector row_sums = solution.plan().rowwise().sum(), column_sums = solution.plan().colwise().sum();
    const double largest = one.cost.maxCoeff(), eps = solution.epsilon();
    // Rounding of potentials as large as the costs, in units of ε.
    const double rounding = 4e-16 * (1 + largest / eps);
    const double error =
        testing::policy_error(one.options.rows, one.a, row_sums, solution.row_potential(), eps) +
        testing::policy_error(one.options.columns, one.b, column_sums, solution.column_potential(), eps);
    EXPECT_LE(error, 2 * one.options.tolerance + 20 * rounding);
    marginal.see(error / one.options.tolerance, one.name);

    const Matrix exponent =
        ((-one.cost).colwise() + solution.row_potential()).rowwise() + solution.column_potential().transpose();
    const Matrix expected = one.a.asDiagonal() * (exponent / eps).array().exp().matrix() * one.b.asDiagonal();
    const double formula_error = (solution.plan() - expected).lpNorm<1>();
    EXPECT_LE(formula_error, 1e-12 + 20 * rounding);
    formula.see(formula_error / (1e-12 + 20 * rounding), one.name);

    const double direct = solution.plan().cwiseProduct(one.cost).sum();
    double entropy = 0;
    for (Index j = 0; j < one.cost.cols(); ++j)
      for (Index i = 0; i < one.cost.rows(); ++i)
        if (const double g = solution.plan()(i, j); g > 0) entropy += g * (std::log(g / one.a[i] / one.b[j]) - 1);
    const double direct_value = direct + eps * entropy + testing::penalty_of(one.options.rows, one.a, row_sums, eps) +
                                testing::penalty_of(one.options.columns, one.b, column_sums, eps);
    const double size = largest + eps;
    EXPECT_NEAR(solution.transport_cost(), direct, 1e-12 * size);
    // The policies' penalties are taken at the demanded sums: 1e-9 of mass away from the plan's own.
    EXPECT_NEAR(solution.value(), direct_value, 1e-8 * size);
    cost_error.see(std::abs(solution.transport_cost() - direct) / (largest > 0 ? largest : 1), one.name);
    value_error.see(std::abs(solution.value() - direct_value) / size, one.name);
  }
  EXPECT_EQ(unconverged, 0);
}

// Sampled sums written out: rows that have no partner go to columns added for them at a cost that is the same for all,
// and columns that belong to unseen rows go to rows added for them, whose kernel is the mean of those there are.
Matrix with_the_unseen(const Matrix& cost, double epsilon) {
  const Index n = cost.rows(), m = cost.cols(), all = std::max(n, m);
  Matrix whole = Matrix::Zero(all, all);
  whole.topLeftCorner(n, m) = cost;
  for (Index j = 0; j < m && n < m; ++j) {
    const double least = cost.col(j).minCoeff();
    const double mean = ((least - cost.col(j).array()) / epsilon).exp().mean();
    whole.col(j).tail(m - n).setConstant(least - epsilon * std::log(mean));
  }
  return whole;
}

TEST(DenseSolver, SampledSumsAreThoseOfABalancedProblemWithWhatIsMissingAdded) {
  Draw draw(105);
  Worst plans("plan"), values("value");
  for (int k = 0; k < 100; ++k) {
    Matrix cost = random_cost(draw);
    const Index n = cost.rows(), m = cost.cols();
    cost /= std::max(cost.maxCoeff(), 1e-300);
    const double epsilon = draw.log_uniform(1e-3, 1e3);
    SCOPED_TRACE("case " + std::to_string(k) + " " + std::to_string(n) + "x" + std::to_string(m) + " epsilon " +
                 std::to_string(epsilon));
    const SolverOptions exact{.epsilon = epsilon, .relative = false, .tolerance = 1e-12};
    SolverOptions sampled = exact;
    sampled.rows = Sampled{};
    const Solution solution = Solver(sampled).solve(cost);
    const Solution whole = Solver(exact).solve(with_the_unseen(cost, epsilon));
    ASSERT_TRUE(solution.converged() && whole.converged()) << solution.message() << whole.message();
    // Per column: links of a column to a row, or to the unseen rows, split by how much each has to do with it.
    Matrix links = whole.plan().topLeftCorner(n, m);
    if (n < m) {
      const Matrix kernel = (-cost / epsilon).array().exp();
      for (Index j = 0; j < m; ++j)
        links.col(j) += kernel.col(j) / kernel.col(j).sum() * whole.plan().col(j).tail(m - n).sum();
    }
    const double share = links.sum();  // of the whole problem's mass
    const double plan_error = (solution.plan() - links / share).lpNorm<1>();
    EXPECT_LE(plan_error, 1e-9);
    plans.see(plan_error, "case " + std::to_string(k));
    // Values differ by the mass that they are of, and by the 1 in ΣΓ(log Γ - 1).
    const double per_link = (whole.value() + epsilon) / share, here = solution.value() + epsilon;
    EXPECT_NEAR(here, per_link, 1e-9 * (1 + epsilon));
    values.see(std::abs(here - per_link) / (1 + epsilon), "case " + std::to_string(k));
  }
}

TEST(DenseSolver, RobustMarginalsStayOnTheSimplexInsideTheirBallAndGiveOutliersLessMass) {
  Draw draw(102);
  Worst simplex("Σ - 1"), outside("outside of the ball");
  for (int k = 0; k < 200; ++k) {
    const Index n = draw.integer(3, 30), m = draw.integer(2, 30);
    const double scale = draw.log_uniform(1e-3, 1e3);
    Matrix cost(n, m);
    const Vector t = draw.normals(n), s = draw.normals(m), a = draw.weights(n), b = draw.weights(m);
    for (Index j = 0; j < m; ++j) cost.col(j) = scale * (t.array() - s[j]).square();
    const Index outlier = draw.integer(0, n - 1);
    cost.row(outlier).array() += 40 * scale;
    const Ball ball{.spread = draw.log_uniform(1e-3, 1), .entropy = draw.log_uniform(0.1, 2)};
    const bool both = draw.chance(0.5);
    const double epsilon = draw.log_uniform(1e-8, 0.3);
    Solver solver(
        {.epsilon = epsilon, .rows = ball, .columns = both ? MarginalPolicy(ball) : Exact{}, .tolerance = 1e-10});
    const Solution solution = solver.solve(cost, a, b);
    const std::string name = "case " + std::to_string(k) + " " + std::to_string(n) + "x" + std::to_string(m) +
                             " spread " + std::to_string(ball.spread) + " entropy " + std::to_string(ball.entropy) +
                             " epsilon " + std::to_string(epsilon) + (both ? " both" : "");
    SCOPED_TRACE(name);
    ASSERT_TRUE(solution.converged()) << solution.message();
    auto check = [&](const Vector& weights, const Vector& sums) {
      const double distance = ((sums - weights).array().square() / weights.array()).sum();
      EXPECT_NEAR(sums.sum(), 1, 1e-9);
      EXPECT_LE(distance, ball.spread + 1e-9);
      simplex.see(std::abs(sums.sum() - 1), name);
      outside.see(distance - ball.spread, name);
    };
    check(a, solution.plan().rowwise().sum());
    if (both) check(b, solution.plan().colwise().sum());
    EXPECT_LT(solution.plan().row(outlier).sum(), a[outlier]);
    for (Index i = 0; i < n; ++i)
      EXPECT_GE(solution.plan().row(i).sum() / a[i],
                solution.plan().row(outlier).sum() / a[outlier] * (1 - 1e-9) - 1e-300);
  }
}

// Few rows and balls on both sides end at corners: one ball just active, the plan all but a permutation. Adding a
// constant to the cost adds it to F, so W sums to one.
TEST(DenseSolver, SmallProblemsBetweenTwoBallsConvergeAndTheirWeightedPlansSumToOne) {
  Worst worst("ΣW - 1");
  Draw draw(104);
  for (const double spread : {0.004, 0.05, 0.25, 1.0})
    for (const double epsilon : {1e-1, 2e-2, 1e-3, 1e-4})
      for (int k = 0; k < 60; ++k) {
        Matrix cost = draw.normals(draw.integer(2, 7), draw.integer(2, 7)).cwiseAbs();
        if (draw.chance(0.5)) cost.diagonal() *= 0.02;
        Solver solver({.epsilon = epsilon, .relative = false, .rows = Ball{spread}, .columns = Ball{spread}});
        const Solution solution = solver.solve(cost);
        const std::string name =
            "spread " + std::to_string(spread) + " epsilon " + std::to_string(epsilon) + " case " + std::to_string(k);
        ASSERT_TRUE(solution.converged()) << name << ": " << solution.message();
        const double off = std::abs(solution.gradient().sum() - 1);
        EXPECT_LE(off, 1e-6) << name;
        worst.see(off, name);
      }
}

TEST(DenseSolver, TheWeightedPlanKeepsTheMarginalsOfThePlanWhenBothSidesAreExact) {
  Draw draw(103);
  Worst worst("marginals of W");
  for (int k = 0; k < 200; ++k) {
    const Matrix cost = random_cost(draw);
    const Vector a = draw.weights(cost.rows()), b = draw.weights(cost.cols());
    Solver solver({.epsilon = draw.log_uniform(1e-8, 1e3)});
    const Solution solution = solver.solve(cost, a, b);
    ASSERT_TRUE(solution.converged()) << solution.message();
    const Matrix w = solution.gradient();
    const double error = (w.rowwise().sum() - a).lpNorm<1>() + (w.colwise().sum().transpose() - b).lpNorm<1>();
    EXPECT_LE(error, 1e-8) << "case " << k << " epsilon " << solution.epsilon() / std::max(1e-300, cost.maxCoeff());
    worst.see(error, "case " + std::to_string(k));
    EXPECT_EQ(solution.gradient(Objective::entropic), solution.plan());
  }
}

TEST(DenseSolver, TransposingTheProblemTransposesTheAnswer) {
  Worst worst("transposed");
  for (const Case& one : cases(104, 64, 1e-5)) {
    SCOPED_TRACE(one.name);
    SolverOptions swapped = one.options;
    std::swap(swapped.rows, swapped.columns);
    Solver solver(one.options), other(swapped);
    const Solution solution = solver.solve(one.cost, one.a, one.b);
    const Solution transposed = other.solve(one.cost.transpose(), one.b, one.a);
    const double error = (solution.plan() - transposed.plan().transpose()).lpNorm<1>();
    EXPECT_LE(error, 1e-7 * std::max(1.0, solution.plan().sum()));
    worst.see(error, one.name);
  }
}

}  // namespace
}  // namespace unshuffle::transport
