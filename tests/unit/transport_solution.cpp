// A Solution is independent: it stays valid whatever its solver does, and solving has no side effects on the process.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/lapack.hpp"
#include "oracle/transport_support.hpp"
#include "transport/dual.hpp"
#include "transport/saturated_kernel.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/transport/solver.hpp"

extern "C" {
void openblas_set_num_threads(int threads) __attribute__((weak));
int openblas_get_num_threads() __attribute__((weak));
}

namespace unshuffle::transport {
namespace {

using testing::Draw;

/// All that a solution has to say.
struct Content {
  Matrix plan, gradient, entropic_gradient, pulled;
  Vector row_potential, column_potential, row_sums, column_sums;
  double value, transport_cost;

  Content(const Solution& solution, const Matrix& cotangent)
      : plan(solution.plan()),
        gradient(solution.gradient()),
        entropic_gradient(solution.gradient(Objective::entropic)),
        pulled(solution.pull_back(cotangent)),
        row_potential(solution.row_potential()),
        column_potential(solution.column_potential()),
        row_sums(solution.row_sums()),
        column_sums(solution.column_sums()),
        value(solution.value()),
        transport_cost(solution.transport_cost()) {}
  bool operator==(const Content&) const = default;
};

struct Setting {
  Matrix first, second, cotangent;
  SolverOptions options;
};

/// For every pair of policies, and for costs that are high, wide and square.
template <class Check>
void for_all_settings(Check check) {
  Draw draw(31);
  for (const auto& [rows, columns] : testing::policy_pairs(1))
    for (const auto& [n, m] : {std::pair<Index, Index>{9, 6}, {5, 8}, {7, 7}}) {
      SCOPED_TRACE(testing::name_of(rows) + "/" + testing::name_of(columns) + " " + std::to_string(n) + "x" +
                   std::to_string(m));
      check(Setting{draw.normals(n, m).cwiseAbs2(),
                    draw.normals(n, m).cwiseAbs2(),
                    draw.normals(n, m),
                    {.epsilon = 0.05, .rows = rows, .columns = columns}});
    }
}

TEST(Solution, is_not_touched_by_what_its_solver_solves_next) {
  for_all_settings([](const Setting& at) {
    const Content expected(solve(at.first, at.options), at.cotangent);
    Solver solver(at.options);
    const Solution kept = solver.solve(at.first);
    const Solution other = solver.solve(at.second);
    const Matrix of_another_size = at.first.topRows(3);
    (void)solver.solve(of_another_size).gradient();
    EXPECT_EQ(Content(kept, at.cotangent), expected);
    EXPECT_NE(Content(other, at.cotangent), expected);
  });
}

TEST(Solution, outlives_its_solver_and_its_cost) {
  for_all_settings([](const Setting& at) {
    const Content expected(solve(at.first, at.options), at.cotangent);
    const Solution kept = [&] {
      Matrix cost = at.first;
      Solver solver(at.options);
      Solution solution = solver.solve(cost);
      cost.setConstant(1e9);
      solver.set_options({.epsilon = 7, .relative = false});
      return solution;
    }();
    EXPECT_EQ(Content(kept, at.cotangent), expected);
  });
}

TEST(Solution, copies_share_one_content_and_a_moved_cost_gives_the_same) {
  Draw draw(32);
  const Matrix cost = draw.normals(6, 4).cwiseAbs2(), cotangent = draw.normals(6, 4);
  Solution original = solve(cost);
  const Content expected(original, cotangent);
  const Solution copy = original;
  EXPECT_EQ(&copy.plan(), &original.plan());
  original = solve(draw.normals(2, 3));
  EXPECT_EQ(Content(copy, cotangent), expected);
  Matrix given = cost;
  EXPECT_EQ(Content(solve(std::move(given)), cotangent), expected);
}

TEST(Solution, derivatives_may_be_taken_by_several_threads_at_once) {
  Draw draw(33);
  const Matrix cost = draw.normals(40, 30).cwiseAbs2(), cotangent = draw.normals(40, 30);
  const Solution solution = solve(cost, {.rows = Ball{.spread = 0.1}});
  const Content expected(solution, cotangent);
  std::vector<int> same(8);
  std::vector<std::thread> threads;
  for (int& answer : same) threads.emplace_back([&] { answer = Content(solution, cotangent) == expected ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(8, 1));
}

TEST(Solution, of_given_weights_is_that_of_a_solver_with_them) {
  Draw draw(34);
  const Matrix cost = draw.normals(6, 4).cwiseAbs2(), cotangent = draw.normals(6, 4);
  const Vector a = draw.weights(6), b = draw.weights(4);
  const SolverOptions options{.epsilon = 0.1};
  EXPECT_EQ(Content(solve(cost, a, b, options), cotangent), Content(Solver(options).solve(cost, a, b), cotangent));
}

/// Another number of OpenBLAS's threads for the length of a test.
class Threads : public ::testing::Test {
 protected:
  static constexpr int several = 3;
  void SetUp() override {
    if (openblas_set_num_threads == nullptr || openblas_get_num_threads == nullptr) GTEST_SKIP() << "no OpenBLAS";
    before_ = openblas_get_num_threads();
    openblas_set_num_threads(several);
    if (openblas_get_num_threads() != several) GTEST_SKIP() << "OpenBLAS without threads";
  }
  void TearDown() override {
    if (before_ > 0) openblas_set_num_threads(before_);
  }

 private:
  int before_ = 0;
};

TEST_F(Threads, of_openblas_are_as_many_after_a_solve_and_its_derivatives) {
  Draw draw(35);
  const Matrix cost = draw.normals(300, 300).cwiseAbs2();
  Solver solver;
  EXPECT_EQ(openblas_get_num_threads(), several);
  const Solution solution = solver.solve(cost);
  EXPECT_EQ(openblas_get_num_threads(), several);
  (void)solution.gradient();
  (void)solution.pull_back(cost);
  EXPECT_EQ(openblas_get_num_threads(), several);
  (void)solve_batch(std::vector<Matrix>(20, draw.normals(12, 9)), {});
  EXPECT_EQ(openblas_get_num_threads(), several);
}

TEST_F(Threads, of_openblas_are_as_many_after_an_evaluation) {
  Draw draw(36);
  Problem problem;
  problem.y = draw.normals(50, 1);
  problem.x = Matrix(50, 0);
  problem.z = draw.normals(50, 2);
  const auto model = Linear{}.bound_to(problem);
  for (const Backend backend : {Backend::sorted, Backend::dense}) {
    EvaluatorOptions options;
    options.backend = backend;
    Evaluator evaluator(problem, *model, options);
    EXPECT_EQ(openblas_get_num_threads(), several);
    (void)evaluator.evaluate(Vector::Ones(3));
    EXPECT_EQ(openblas_get_num_threads(), several);
  }
}

TEST_F(Threads, of_openblas_do_not_change_a_bit_of_the_answer) {
  Draw draw(37);
  const Matrix cost = draw.normals(400, 350).cwiseAbs2(), cotangent = draw.normals(400, 350);
  const SolverOptions options{.epsilon = 1e-3};
  const Content on_several(solve(cost, options), cotangent);
  openblas_set_num_threads(1);
  EXPECT_EQ(Content(solve(cost, options), cotangent), on_several);
}

TEST_F(Threads, of_openblas_come_back_when_the_last_of_several_callers_is_done) {
  std::vector<std::thread> callers;
  std::vector<int> seen(8);
  for (int& most : seen)
    callers.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        const lapack::OneThread outer, inner;
        most = std::max(most, openblas_get_num_threads());
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(seen, std::vector<int>(8, 1));
  EXPECT_EQ(openblas_get_num_threads(), several);
}

// The same plan, whether all costs are stored or only those that differ from 1.
TEST(SaturatedKernel, agrees_with_the_dense_solver) {
  for (const MarginalPolicy& policy : {MarginalPolicy(KullbackLeibler{.strength = 0.3}), MarginalPolicy(Exact{})}) {
    std::mt19937_64 draw(3);
    const Index rows = 30, columns = 25;
    constexpr double epsilon = 0.05;
    Matrix cost = Matrix::Ones(rows, columns);
    std::vector<ClosePair> close;
    for (Index j = 0; j < columns; ++j)
      for (const Index i : {j, (j * 7 + 3) % rows}) {
        if (cost(i, j) < 1) continue;
        close.push_back({i, j, std::uniform_real_distribution(0.0, 1.0)(draw)});
        cost(i, j) = 1 - close.back().closeness;
      }
    SolverOptions options{.epsilon = epsilon, .relative = false};
    options.rows = options.columns = policy;
    const Solution dense = solve(cost, options);
    ASSERT_TRUE(dense.converged());

    SaturatedKernel kernel(rows, columns, close, epsilon);
    const SideTerms left(policy, Vector::Constant(rows, 1.0 / rows), epsilon);
    const SideTerms right(policy, Vector::Constant(columns, 1.0 / columns), epsilon);
    DualSolver<SaturatedKernel> solver(kernel, left, right);
    solver.begin(Vector::Zero(columns));
    const DualOutcome found = solver.maximise({});
    EXPECT_TRUE(found.converged) << found.message;
    EXPECT_LT((kernel.row_sums() - dense.row_sums()).lpNorm<1>(), 1e-7);
    EXPECT_LT((kernel.column_sums() - dense.column_sums()).lpNorm<1>(), 1e-7);
    for (const ClosePair& pair : close)
      EXPECT_NEAR(kernel.mass(pair), dense.plan()(pair.row, pair.column), 1e-7 / rows);
  }
}

}  // namespace
}  // namespace unshuffle::transport
