// The dense solver's products and conjugate gradients against exponentials and factors, and its answers at sizes where
// these are used against the optimality conditions and finite differences.
#include <gtest/gtest.h>
#include <omp.h>

#include "oracle/certificate.hpp"
#include "oracle/transport_support.hpp"
#include "transport/dense_kernel.hpp"
#include "transport/dual.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;
using testing::Worst;

/// The same kernel, whose systems are always solved by a factor.
class FactoredKernel : public DenseKernel {
 public:
  using DenseKernel::DenseKernel;
  static bool prepare_products(const Vector& /*inverse_a1*/, const Vector& /*a2*/) { return false; }
};

struct Posed {
  Matrix cost;
  Vector a, b;
  double epsilon;
};

/// Some entries zero.
Vector weights_with_gaps(Draw& draw, Index size) {
  Vector w = draw.weights(size);
  for (Index i = 1; i < size; ++i)
    if (draw.chance(0.1)) w[i] = 0;
  return w / w.sum();
}

/// Points in the plane, uniform numbers, ties and duplicates, with costs from 1e-6 to 1e6.
Posed posed(Draw& draw, Index n, Index m, double relative) {
  Posed one;
  one.cost = draw.normals(n, m).cwiseAbs();
  const Index kind = draw.integer(0, 3);
  if (kind == 0) {
    const Matrix x = draw.normals(n, 2), y = draw.normals(m, 2);
    for (Index j = 0; j < m; ++j) one.cost.col(j) = (x.rowwise() - y.row(j)).rowwise().squaredNorm();
  }
  if (kind == 1) one.cost = (4 * one.cost).array().round();
  if (kind == 2)
    for (Index i = 1; i < n; i += 2) one.cost.row(i) = one.cost.row(0);
  one.cost *= draw.log_uniform(1e-6, 1e6);
  one.a = draw.chance(0.5) ? weights_with_gaps(draw, n) : testing::equal_weights(n);
  one.b = draw.chance(0.5) ? weights_with_gaps(draw, m) : testing::equal_weights(m);
  const double largest = one.cost.maxCoeff();
  one.epsilon = relative * (largest > 0 ? largest : 1);
  return one;
}

Index any_size(Draw& draw) { return draw.chance(0.1) ? 1 : draw.integer(2, 200); }

TEST(DenseProducts, EvaluateNearbyPotentialsAsANewKernelDoes) {
  Draw draw(301);
  Worst rows("row log sums"), columns("column sums"), log_sums("column log sums");
  for (int repeat = 0; repeat < 60; ++repeat) {
    const Posed one = posed(draw, any_size(draw), any_size(draw), draw.log_uniform(1e-4, 10));
    DenseKernel kernel(one.cost, one.a, one.b, one.epsilon);
    Vector v = draw.normals(one.b.size());
    (void)kernel.evaluate(v);
    for (const double move : {1e-6, 1.0, 10.0, 100.0}) {  // the last two lead to new entries
      v += move * draw.normals(one.b.size());
      DenseKernel fresh(one.cost, one.a, one.b, one.epsilon);
      const Vector sums = kernel.evaluate(v), expected = fresh.evaluate(v);
      const double rounding = 1e-12 * (1 + one.cost.maxCoeff() / one.epsilon);
      ASSERT_LE((sums - expected).lpNorm<Eigen::Infinity>(), rounding);
      rows.see((sums - expected).lpNorm<Eigen::Infinity>() / rounding, "move " + std::to_string(move));
      kernel.set_rows(-sums);
      fresh.set_rows(-sums);
      ASSERT_LE((kernel.column_sums() - fresh.column_sums()).lpNorm<1>(), rounding);
      columns.see((kernel.column_sums() - fresh.column_sums()).lpNorm<1>() / rounding, "move " + std::to_string(move));
      const Matrix exponent = (-one.cost / one.epsilon).colwise() - sums;
      for (Index j = 0; j < v.size(); ++j) {
        const double largest = exponent.col(j).maxCoeff();
        const double direct = largest + std::log(((exponent.col(j).array() - largest).exp() * one.a.array()).sum());
        const double off = std::abs(kernel.column_log_sums(-sums)[j] - direct);
        if (!std::isfinite(direct)) continue;  // the nearest rows have no weight
        ASSERT_LE(off, rounding);
        log_sums.see(off / rounding, "move " + std::to_string(move));
      }
    }
  }
}

template <class Kernel>
struct Solved {
  Solved(const Posed& one, const MarginalPolicy& row_policy, const MarginalPolicy& column_policy)
      : rows(row_policy, one.a, one.epsilon),
        columns(column_policy, one.b, one.epsilon),
        kernel(one.cost, one.a, one.b, one.epsilon),
        solver(kernel, rows, columns) {
    solver.begin(Vector::Zero(one.b.size()));
    outcome = solver.maximise({.tolerance = 1e-12, .sinkhorn_pays = 0.75});
    kernel.settle();
  }

  SideTerms rows, columns;
  Kernel kernel;
  DualSolver<Kernel> solver;
  DualOutcome outcome;
};

TEST(DenseProducts, LeadToThePlanAndTheAdjointOfAFactor) {
  Draw draw(302);
  Worst plans("plan"), adjoints("adjoint");
  const std::vector<std::pair<MarginalPolicy, MarginalPolicy>> policies{{Exact{}, Exact{}},
                                                                        {KullbackLeibler{0.5}, Exact{}},
                                                                        {Exact{}, KullbackLeibler{2}},
                                                                        {Sampled{1.5}, Exact{}},
                                                                        {Exact{}, Ball{}},
                                                                        {Exact{}, Free{}},
                                                                        {Ball{}, KullbackLeibler{1}}};
  for (int repeat = 0; repeat < 70; ++repeat) {
    const auto& [row_policy, column_policy] = policies[static_cast<std::size_t>(repeat) % policies.size()];
    const Posed one = posed(draw, any_size(draw), any_size(draw), draw.log_uniform(0.03, 10));
    SCOPED_TRACE(testing::name_of(row_policy) + "/" + testing::name_of(column_policy) + " " +
                 std::to_string(one.a.size()) + "x" + std::to_string(one.b.size()));
    Solved<DenseKernel> products(one, row_policy, column_policy);
    Solved<FactoredKernel> factored(one, row_policy, column_policy);
    ASSERT_TRUE(products.outcome.converged && factored.outcome.converged) << products.outcome.message;
    const double mass = std::max(1.0, factored.kernel.plan().sum());
    const double apart = (products.kernel.plan() - factored.kernel.plan()).lpNorm<1>() / mass;
    EXPECT_LE(apart, 1e-9);
    plans.see(apart, "");

    // A right side with a solution: what some x and y give.
    const Vector x = draw.normals(one.a.size()), y = draw.normals(one.b.size());
    const Curvature m1 = products.rows.curvature(products.outcome.rows.log_ratio, products.outcome.rows.multipliers);
    const Curvature m2 =
        products.columns.curvature(products.outcome.columns.log_ratio, products.outcome.columns.multipliers);
    const Vector f = products.kernel.row_sums().cwiseProduct(x) + m1.apply(x) +
                     products.kernel.plan() * (products.columns.is_free() ? Vector::Zero(y.size()) : y);
    const Vector g =
        products.kernel.column_sums().cwiseProduct(y) + m2.apply(y) + products.kernel.plan().transpose() * x;
    const SystemSolution found = products.solver.solve_system(products.outcome, f, g);
    const SystemSolution expected = factored.solver.solve_system(factored.outcome, f, g);
    const Matrix &plan = products.kernel.plan(), &other = factored.kernel.plan();
    // x + y as the derivatives use it: weighted by the plan, which no constant moved between them changes.
    double off = 0, size = 0;
    for (Index j = 0; j < plan.cols(); ++j)
      for (Index i = 0; i < plan.rows(); ++i) {
        off += std::abs(plan(i, j) * (found.x(i, 0) + found.y(j, 0)) -
                        other(i, j) * (expected.x(i, 0) + expected.y(j, 0)));
        size += std::abs(plan(i, j)) * (std::abs(x[i]) + std::abs(y[j]));
      }
    EXPECT_LE(off, 1e-7 * size);
    adjoints.see(off / size, "");
  }
}

TEST(DenseProducts, AnswersOfSeveralHundredRowsAreCertified) {
  Draw draw(303);
  Worst worst("marginal error / tolerance");
  for (const double relative : {1e-1, 1e-2, 1e-3, 1e-4, 1e-5})
    for (const auto& [rows, columns] : testing::policy_pairs(1)) {
      const Index n = draw.integer(100, 260), m = draw.integer(100, 260);
      Posed one = posed(draw, n, m, relative);
      one.cost /= std::max(one.cost.maxCoeff(), 1e-300);
      one.epsilon = relative;
      // The certificate divides a ball's sums by its weights.
      if (std::holds_alternative<Ball>(rows)) one.a = draw.weights(n);
      if (std::holds_alternative<Ball>(columns)) one.b = draw.weights(m);
      const std::string name = testing::name_of(rows) + "/" + testing::name_of(columns) + " " + std::to_string(n) +
                               "x" + std::to_string(m) + " epsilon " + std::to_string(relative);
      SCOPED_TRACE(name);
      const SolverOptions options{.epsilon = relative, .relative = false, .rows = rows, .columns = columns};
      const Solution solution = solve(one.cost, one.a, one.b, options);
      ASSERT_TRUE(solution.converged()) << solution.message();
      const double rounding = 4e-16 * (1 + 1 / relative), mass = std::max(1.0, solution.plan().sum());
      const double error =
          testing::policy_error(rows, one.a, solution.plan().rowwise().sum(), solution.row_potential(), relative) +
          testing::policy_error(columns, one.b, solution.plan().colwise().sum(), solution.column_potential(), relative);
      EXPECT_LE(error, mass * (4 * options.tolerance + 50 * rounding));
      worst.see(error / options.tolerance, name);
    }
}

TEST(DenseProducts, GradientsOfHundredsOfRowsAgreeWithFiniteDifferences) {
  Draw draw(304);
  Worst worst("gradient");
  for (const double relative : {1.0, 1e-1, 1e-2, 1e-3, 1e-4})
    for (const auto& [rows, columns] :
         std::vector<std::pair<MarginalPolicy, MarginalPolicy>>{{Exact{}, Exact{}},
                                                                {KullbackLeibler{0.5}, Exact{}},
                                                                {Exact{}, Sampled{1.5}},
                                                                {Exact{}, Ball{.spread = 0.1}}}) {
      SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns) + " epsilon " + std::to_string(relative));
      const Index n = draw.integer(90, 150), m = draw.integer(90, 150);
      const Matrix cost = draw.normals(n, m).cwiseAbs2() / 16, direction = draw.normals(n, m);
      const Vector a = draw.weights(n), b = draw.weights(m);
      const SolverOptions options{
          .epsilon = relative, .relative = false, .rows = rows, .columns = columns, .tolerance = 1e-12};
      const auto objective = [&](double step) {
        return solve(cost + step * direction, a, b, options).transport_cost();
      };
      const auto central = [&](double h) { return (objective(h) - objective(-h)) / (2 * h); };
      const double h = relative / 64, slope = (4 * central(h / 2) - central(h)) / 3;
      const Matrix w = solve(cost, a, b, options).gradient();
      const double analytic = w.cwiseProduct(direction).sum();
      const double size = std::max(std::abs(analytic), 0.01 * w.cwiseProduct(direction).cwiseAbs().sum());
      const double error = std::abs(slope - analytic) / size;
      EXPECT_LE(error, 1e-5);
      worst.see(error, testing::name_of(columns) + " epsilon " + std::to_string(relative));
    }
}

TEST(DenseProducts, AnswersDoNotDependOnTheNumberOfThreads) {
  Draw draw(305);
  const int before = omp_get_max_threads();
  for (const double relative : {1e-1, 1e-2, 1e-3, 1e-4}) {
    const Posed one = posed(draw, 350, 330, relative);
    const auto answer = [&](int threads) {
      omp_set_num_threads(threads);
      const Solution solution = solve(one.cost, one.a, one.b, {.epsilon = one.epsilon, .relative = false});
      return std::pair{solution.plan(), solution.gradient()};
    };
    const auto alone = answer(1);
    for (const int threads : {2, 3}) EXPECT_EQ(answer(threads), alone) << threads << " threads, " << relative;
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace unshuffle::transport
