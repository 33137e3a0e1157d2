// Behaviour of the dense transport solver beyond its numbers: bad input, zero weights, batches, warm starts.
#include <gtest/gtest.h>
#include <omp.h>

#include <limits>

#include "core/random.hpp"
#include "oracle/transport_support.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;

template <class Action>
void expect_refusal(Action action, const std::string& named) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; a complaint about \"" << named << "\" was expected";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
  }
}

TEST(TransportSolver, RefusesCostsThatAreNotFiniteOrEmpty) {
  Solver solver;
  for (double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    Matrix cost = Matrix::Ones(3, 2);
    cost(2, 1) = bad;
    expect_refusal([&] { (void)solver.solve(cost); }, "cost");
    expect_refusal([&] { (void)solve_batch({Matrix::Ones(2, 2), cost}, {}); }, "cost");
  }
  expect_refusal([&] { (void)solver.solve(Matrix(0, 3)); }, "0x3");
  expect_refusal([&] { (void)solver.solve(Matrix(3, 0)); }, "3x0");
}

TEST(TransportSolver, RefusesWeightsThatCannotBeWeights) {
  Solver solver;
  const Matrix cost = Matrix::Ones(3, 2);
  const Vector good_rows = Vector::Ones(3), good_columns = Vector::Ones(2);
  expect_refusal([&] { (void)solver.solve(cost, Vector::Ones(2), good_columns); }, "row weights");
  expect_refusal([&] { (void)solver.solve(cost, good_rows, Vector::Ones(3)); }, "column weights");
  expect_refusal([&] { (void)solver.solve(cost, Vector{{1, -1, 1}}, good_columns); }, "row weights");
  expect_refusal([&] { (void)solver.solve(cost, good_rows, Vector{{1, std::nan("")}}); }, "column weights");
  expect_refusal([&] { (void)solver.solve(cost, Vector::Zero(3), good_columns); }, "row weights");
}

TEST(TransportSolver, RefusesOptionsThatMakeNoSense) {
  for (double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_refusal([&] { Solver({.epsilon = bad}); }, "epsilon");
    expect_refusal([&] { Solver({.rows = Ball{.spread = bad}}); }, "spread");
    expect_refusal([&] { Solver({.columns = Ball{.entropy = bad}}); }, "entropy");
    expect_refusal([&] { Solver({.rows = KullbackLeibler{bad}}); }, "KL strength");
    if (bad != 0) expect_refusal([&] { Solver({.rows = Sampled{bad}}); }, "sampled ratio");
    expect_refusal([&] { Solver({.rows = Sampled{}, .columns = Free{}}); }, "exact sums on the other");
  }
  expect_refusal([&] { Solver({.tolerance = 0}); }, "tolerance");
  expect_refusal([&] { Solver({.max_iterations = 0}); }, "max_iterations");
  expect_refusal([&] { (void)solve(Matrix::Ones(2, 2), {.epsilon = -1}); }, "epsilon");
}

TEST(TransportSolver, GivesRowsOfZeroWeightNoMassAndLeavesTheOthersAsIfTheyWereNotThere) {
  Draw draw(3);
  const Matrix cost = draw.normals(7, 6).cwiseAbs2();
  Vector a = draw.weights(7), b = draw.weights(6);
  a[2] = b[0] = b[4] = 0;
  const std::vector<Index> rows{0, 1, 3, 4, 5, 6}, columns{1, 2, 3, 5};
  for (const auto& [row_policy, column_policy] : testing::policy_pairs(1)) {
    SCOPED_TRACE(testing::name_of(row_policy) + "/" + testing::name_of(column_policy));
    const SolverOptions options{
        .epsilon = 0.05, .relative = false, .rows = row_policy, .columns = column_policy, .tolerance = 1e-11};
    Solver solver(options), reduced(options);
    const Solution solution = solver.solve(cost, a, b);
    const Solution smaller = reduced.solve(cost(rows, columns), a(rows), b(columns));
    ASSERT_TRUE(solution.converged()) << solution.message();
    EXPECT_EQ(solution.plan().row(2).cwiseAbs().sum(), 0);
    EXPECT_EQ(solution.plan().col(0).cwiseAbs().sum() + solution.plan().col(4).cwiseAbs().sum(), 0);
    EXPECT_LE((solution.plan()(rows, columns) - smaller.plan()).lpNorm<1>(), 1e-9);
    EXPECT_NEAR(solution.value(), smaller.value(), 1e-9);
    EXPECT_NEAR(solution.transport_cost(), smaller.transport_cost(), 1e-9);
    const Matrix w = solution.gradient();
    EXPECT_TRUE(w.allFinite());
    EXPECT_LE((w(rows, columns) - smaller.gradient()).lpNorm<1>(), 1e-7);
    EXPECT_EQ(w.row(2).cwiseAbs().sum() + w.col(0).cwiseAbs().sum() + w.col(4).cwiseAbs().sum(), 0);
  }
}

TEST(TransportSolver, SolvesABatchToTheSameNumbersAsOneByOne) {
  Draw draw(4);
  std::vector<Matrix> costs;
  for (int k = 0; k < 40; ++k) costs.push_back(draw.normals(draw.integer(1, 9), draw.integer(1, 9)).cwiseAbs2());
  for (const auto& [rows, columns] : testing::policy_pairs(1)) {
    const SolverOptions options{.epsilon = 1e-3, .rows = rows, .columns = columns};
    const std::vector<Solution> solutions = solve_batch(costs, options);
    ASSERT_EQ(solutions.size(), costs.size());
    for (std::size_t k = 0; k < costs.size(); ++k) {
      const Solution single = Solver(options).solve(costs[k]);
      EXPECT_EQ(solutions[k].plan(), single.plan()) << "problem " << k;
      EXPECT_EQ(solutions[k].value(), single.value());
      EXPECT_EQ(solutions[k].converged(), single.converged());
    }
  }
  EXPECT_TRUE(solve_batch({}, {}).empty());
}

/// More rows than Eigen multiplies at once, and few enough columns for S to be a single product.
TEST(TransportSolver, GivesTheSameBitsOnAnyNumberOfThreads) {
  Draw draw(9);
  const int before = omp_get_max_threads();
  for (const Index m : {60, 190}) {
    const Matrix cost = draw.normals(700, m).cwiseAbs2();
    for (const auto& [rows, columns] : testing::policy_pairs(4)) {
      SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns));
      std::vector<Matrix> plans, gradients;
      for (const int threads : {1, 3}) {
        omp_set_num_threads(threads);
        const Solution solution =
            transport::solve(cost, {.epsilon = 0.02, .relative = false, .rows = rows, .columns = columns});
        plans.push_back(solution.plan());
        gradients.push_back(solution.gradient());
      }
      EXPECT_EQ(plans[0], plans[1]);
      EXPECT_EQ(gradients[0], gradients[1]);
    }
  }
  omp_set_num_threads(before);
}

TEST(TransportSolver, ReachesTheSamePlanFromAWarmStartInFewSteps) {
  Draw draw(5);
  for (const auto& [rows, columns] : testing::policy_pairs(1)) {
    SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns));
    const SolverOptions options{
        .epsilon = 1e-3, .relative = false, .rows = rows, .columns = columns, .tolerance = 1e-11};
    Solver warm(options);
    const Matrix cost = draw.normals(20, 30).cwiseAbs2(), move = draw.normals(20, 30);
    (void)warm.solve(cost);
    for (double size : {0.0, 1e-4, 1e-2, 1.0, 1e3}) {
      // Costs stay positive: large gains would let a side without fixed mass grow beyond what a double holds.
      const Matrix moved = (cost + size * move).cwiseAbs();
      const Solution from_last = warm.solve(moved), cold = Solver(options).solve(moved);
      ASSERT_TRUE(from_last.converged() && cold.converged()) << from_last.message() << cold.message();
      EXPECT_LE((from_last.plan() - cold.plan()).lpNorm<1>(), 1e-8 * std::max(1.0, cold.plan().sum()));
      const int most_steps = size == 0 ? 1 : size == 1e-4 ? 20 : 1000;  // sweeps, which are cheap, for the most part
      EXPECT_LE(from_last.newton_steps() + from_last.sinkhorn_steps(), most_steps);
    }
    // Other sizes start cold.
    const Matrix other = draw.normals(6, 5).cwiseAbs2();
    EXPECT_EQ(warm.solve(other).plan(), Solver(options).solve(other).plan());
  }
}

TEST(TransportSolver, WeightsKeepTheSumsOfThePlan) {
  // For exact marginals dF/dC has the plan's row and column sums. The last Newton step's factor is not enough here.
  RandomStream random(4, 0);
  const Index n = 600;
  const Matrix y = Matrix::NullaryExpr(n, 2, [&] { return random.normal(); });
  const Matrix z = Matrix::NullaryExpr(n, 2, [&] { return random.normal(); });
  Matrix cost(n, n);
  for (Index j = 0; j < n; ++j) cost.col(j) = (y.rowwise() - z.row(j)).rowwise().squaredNorm();
  Solver solver({.epsilon = 1e-3});
  const Solution solution = solver.solve(cost);
  ASSERT_TRUE(solution.converged());
  const Matrix difference = solution.gradient() - solution.plan();
  EXPECT_LT(difference.rowwise().sum().cwiseAbs().maxCoeff() * double(n), 1e-10);
  EXPECT_LT(difference.colwise().sum().cwiseAbs().maxCoeff() * double(n), 1e-10);
}

TEST(TransportSolver, SaysWhyItDidNotConverge) {
  Draw draw(6);
  Solver solver({.epsilon = 1e-5, .tolerance = 1e-300});
  const Solution solution = solver.solve(draw.normals(10, 12).cwiseAbs2());
  EXPECT_FALSE(solution.converged());
  EXPECT_FALSE(solution.message().empty());
  EXPECT_LE(solution.marginal_error(), 1e-8);
  EXPECT_EQ(solution.error_history().back(), solution.marginal_error());
}

TEST(TransportSolver, DoesNotDependOnAConstantAddedToTheCost) {
  Draw draw(8);
  const Matrix cost = draw.normals(12, 9).cwiseAbs2();
  const SolverOptions options{.epsilon = 0.01, .relative = false, .columns = Ball{.spread = 0.1}};
  Solver solver(options), shifted(options);
  const Solution solution = solver.solve(cost), other = shifted.solve(cost.array() + 100);
  EXPECT_LE((solution.plan() - other.plan()).lpNorm<1>(), 1e-8);
  EXPECT_NEAR(other.transport_cost(), solution.transport_cost() + 100, 1e-8);
  EXPECT_LE((solution.gradient() - other.gradient()).lpNorm<1>(), 1e-6);
}

}  // namespace
}  // namespace unshuffle::transport
