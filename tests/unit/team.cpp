// Processes that share the starts, the groups or the plan of one fit give what one of them alone gives.
#include <gtest/gtest.h>

#include "core/checkpoint.hpp"
#include "core/random.hpp"
#include "objective/owners.hpp"
#include "support/complaint.hpp"
#include "support/fits.hpp"
#include "support/thread_team.hpp"
#include "unshuffle/core/agreement.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/function.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/tables/simulate.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {
namespace {

/// y = z W + a little noise; rows of z are in another order, within `groups` when there are some.
Problem drawn(Index n, Index m, Index outputs, Index groups = 0) {
  RandomStream random(11, 0);
  auto normal = [&] { return random.normal(); };
  const Index rows = std::max(n, m);
  const Matrix z = Matrix::NullaryExpr(rows, 2, normal);
  Matrix w(2, outputs);
  for (Index o = 0; o < outputs; ++o) w.col(o) << 1 + 0.5 * double(o), 0.7 - double(o);
  const Matrix y = z * w + 0.1 * Matrix::NullaryExpr(rows, outputs, normal);
  Problem problem;
  problem.y = y.topRows(n);
  problem.z = z.topRows(m).colwise().reverse();
  if (groups > 0) {
    for (Index i = 0; i < n; ++i) problem.response_groups.push_back(i % groups);
    for (Index j = 0; j < m; ++j) problem.feature_groups.push_back((m - 1 - j) % groups);
  }
  return completed(std::move(problem));
}

/// The leader's answer, once everybody's was found to be the same to the bit.
Result fitted_by(int size, const Problem& problem, const Estimator& estimator) {
  return as_team(size, [&](Team& team) {
    Result made = fit(problem, Linear{}, estimator, {.threads = 1, .team = &team}).result();
    const std::vector<double> all = team.gather_for_all({made.parameters.begin(), made.parameters.end()});
    for (std::size_t k = 0; k < all.size(); ++k)
      EXPECT_EQ(all[k], made.parameters[static_cast<Index>(k) % made.parameters.size()]);
    return made;
  });
}

TEST(Team, StartsSpreadOverProcessesEndInTheSameBits) {
  const Problem problem = drawn(60, 60, 1);
  const StartOptions starts{.starts = 5};
  for (const Estimator& method :
       {Estimator(Robot{.smoothing = {1e-2}, .starts = starts}),
        Estimator(Am{.starts = starts, .plan = {.smoothing = {1e-2}}}), Estimator(Entropic{.starts = starts})}) {
    const Result alone = fit(problem, Linear{}, method, {.threads = 1}).result();
    for (const int size : {2, 3}) {
      const Result shared = fitted_by(size, problem, method);
      EXPECT_EQ(shared.parameters, alone.parameters);
      EXPECT_EQ(shared.course.candidates.size(), alone.course.candidates.size());
      EXPECT_EQ(shared.course.trace.size(), alone.course.trace.size());
      EXPECT_EQ(shared.course.evaluations, alone.course.evaluations);
      EXPECT_EQ(shared.course.processes, size);
      EXPECT_GT(shared.course.bytes_per_evaluation, 0);
    }
  }
}

TEST(Team, EveryPieceOfWorkIsDoneByOneProcess) {
  // Three processes, each of which knows what it kept and, after the exchange, what the others did.
  const int found = as_team(3, [&](Team& team) {
    Checkpoint work("", WorkKey("fit"));
    work.keep(WorkKey("piece").add(double(team.rank())), std::string(std::size_t(3 + 8 * team.rank()), 'x'));
    EXPECT_FALSE(work.find(WorkKey("piece").add(double((team.rank() + 1) % 3))));
    work.exchange(team);
    int seen = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const auto text = work.find(WorkKey("piece").add(double(rank)));
      if (text && text->size() == std::size_t(3 + 8 * rank)) ++seen;
    }
    return seen;
  });
  EXPECT_EQ(found, 3);
}

TEST(Team, BlocksGoToTheProcessWithLeastToDoAndGiantsToEveryone) {
  EXPECT_EQ(owners_of({{10, 10}, {5, 5}, {5, 5}}, 1, true), (std::vector{0, 0, 0}));
  EXPECT_EQ(owners_of({{10, 10}}, 2, true), std::vector{everyone});
  EXPECT_EQ(owners_of({{10, 10}}, 2, false), std::vector{0});
  EXPECT_EQ(owners_of({{1, 1}}, 2, true), std::vector{0});  // not a row for each
  EXPECT_EQ(owners_of({{4, 4}, {4, 4}, {4, 4}, {4, 4}}, 2, true), (std::vector{0, 1, 0, 1}));
  EXPECT_EQ(owners_of({{2, 2}, {9, 9}, {2, 2}}, 2, true), (std::vector{0, everyone, 1}));
}

/// What the leader says when processes that are not given the same call fit().
template <class Change>
std::string said_of_unlike_processes(const Change& change) {
  return as_team(3, [&](Team& team) {
    Problem problem = drawn(40, 40, 1);
    Ls ls;
    Execution execution{.threads = 1, .team = &team};
    if (team.rank() == 2) change(problem, execution);
    return complaint([&] { (void)fit(problem, Linear{}, ls, execution); });
  });
}

TEST(Team, ProcessesThatAreNotGivenTheSameSayInWhatTheyDiffer) {
  const std::string begin =
      "processes of one run must be given the same tables, options and version as process 1; "
      "process 3 of 3 has ";
  EXPECT_EQ(said_of_unlike_processes([](Problem&, Execution& execution) { execution.seed = 7; }),
            begin + "seed: 7 instead of 0");
  EXPECT_EQ(said_of_unlike_processes([](Problem& problem, Execution&) {
              problem.z.col(0).swap(problem.z.col(1));
              std::swap(problem.z_names[0], problem.z_names[1]);
            }).substr(0, begin.size() + 66),
            begin + "coefficients: intercept,z2,z1 instead of intercept,z1,z2, columns ");
  const std::string content = said_of_unlike_processes([](Problem& problem, Execution&) { problem.z(3, 1) += 1e-15; });
  EXPECT_EQ(content.substr(0, begin.size() + 13), begin + "values of z: ");
  const std::string shorter = said_of_unlike_processes([](Problem& problem, Execution&) {
    problem.z = Matrix(problem.z.topRows(30));
    problem.feature_weights = Vector();
  });
  EXPECT_NE(shorter.find("rows of features: 30 instead of 40"), std::string::npos) << shorter;
  EXPECT_EQ(said_of_unlike_processes([](Problem&, Execution& execution) { execution.threads = 2; }), "");
}

TEST(Team, WhatOneProcessLacksIsADifference) {
  const std::string said = as_team(2, [](Team& team) {
    std::vector<Common> own{{"--out", "fit.json"}};
    if (team.leads()) own.push_back({"--robust", "true"});
    return complaint([&] { require_agreement(team, own); });
  });
  EXPECT_NE(said.find("process 2 of 2 has --robust: none instead of true"), std::string::npos) << said;
}

struct Shape {
  const char* name;
  Index n, m, outputs, groups;
  bool ball = false;
  Objective objective = Objective::transport;
  bool additive = true;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class SharedPlan : public testing::TestWithParam<Shape> {
 protected:
  /// Objective, cost and gradient at two points, the second from the first, and how much of each row is matched.
  static Vector seen_by(Team* team, const Problem& problem, const Model& bound) {
    const Shape shape = GetParam();
    EvaluatorOptions options{.objective = shape.objective, .epsilon = {.value = 5e-3}, .team = team};
    if (shape.ball) options.response_side = options.feature_side = transport::Ball{.spread = 0.25};
    Evaluator evaluator(problem, bound, options);
    std::vector<double> seen;
    for (const double at : {0.2, 0.25}) {
      const Vector w = Vector::Constant(bound.parameters(), at);
      const Evaluation here = evaluator.evaluate(w);
      EXPECT_TRUE(here.converged) << here.message;
      seen.insert(seen.end(), {here.objective, here.transport_cost});
      seen.insert(seen.end(), here.gradient.begin(), here.gradient.end());
      const SoftLinks links = evaluator.links(w);
      seen.insert(seen.end(), links.response_mass.begin(), links.response_mass.end());
      seen.insert(seen.end(), links.feature_mass.begin(), links.feature_mass.end());
    }
    return Eigen::Map<const Vector>(seen.data(), static_cast<Index>(seen.size()));
  }

  static void expect_same_for_any_number(const Problem& problem, const Model& bound) {
    const Vector alone = seen_by(nullptr, problem, bound);
    const double tolerance = GetParam().groups > 4 ? 0 : 1e-9;  // whole groups give the same bits
    for (const int size : {2, 3, 4}) {
      double bytes = 0;
      const Vector shared = as_team(size, [&](Team& team) {
        const Vector seen = seen_by(&team, problem, bound);
        if (team.leads()) bytes = team.bytes_moved();
        return seen;
      });
      ASSERT_EQ(shared.size(), alone.size());
      for (Index k = 0; k < alone.size(); ++k)
        EXPECT_NEAR(shared[k], alone[k], tolerance * std::max(1.0, std::abs(alone[k])));
      EXPECT_GT(bytes, 0);
    }
  }
};

TEST_P(SharedPlan, IsThatOfOneProcessForAnyNumber) {
  const Shape shape = GetParam();
  const Problem problem = drawn(shape.n, shape.m, shape.outputs, shape.groups);
  const auto bent =
      make_function_model([]<class T>(std::span<const double>, std::span<const double> z,
                                      std::span<const T> w) -> T { return w[0] * z[0] + w[1] * z[0] * z[1] + w[2]; },
                          {"slope", "bend", "height"});
  expect_same_for_any_number(problem, *(shape.additive ? Linear{}.bound_to(problem) : bent.bound_to(problem)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, SharedPlan,
                         testing::Values(Shape{"tiles", 30, 24, 2, 0}, Shape{"more_features", 20, 30, 2, 0},
                                         Shape{"entropic", 24, 24, 2, 0, false, Objective::entropic},
                                         Shape{"ball", 30, 24, 2, 0, true}, Shape{"many_groups", 120, 110, 2, 7},
                                         Shape{"few_groups", 40, 40, 2, 2, true},
                                         Shape{"groups_on_a_line", 100, 90, 1, 5},
                                         Shape{"not_additive", 20, 24, 1, 0, false, Objective::transport, false}),
                         [](const auto& shape) { return shape.param.name; });

TEST(Team, AFitOfSharedPlansIsThatOfOneProcess) {
  const Problem problem = drawn(30, 24, 2);
  const Robot robot{.smoothing = {0.05}, .starts = starting_at(Vector::Constant(6, 0.2))};
  for (const Estimator& method : {Estimator(robot), Estimator(RobotRobust{.robot = robot})}) {
    const Result alone = fit(problem, Linear{}, method, {.threads = 1}).result();
    ASSERT_TRUE(alone.status == Status::converged) << alone.message;
    const Result shared = fitted_by(2, problem, method);
    EXPECT_TRUE(shared.status == alone.status) << shared.message;
    EXPECT_LE((shared.parameters - alone.parameters).norm(), 1e-9 * alone.parameters.norm());
    EXPECT_LE(std::abs(shared.objective.value - alone.objective.value), 1e-9 * std::abs(alone.objective.value));
    EXPECT_NEAR(shared.plan.matched_share, alone.plan.matched_share, 1e-9);
    EXPECT_GT(shared.course.bytes_per_evaluation, 0);
  }
}

TEST(Team, PlanAndItsDerivativeAreTheRowsOfTheWholeOne) {
  RandomStream random(4, 0);
  for (const auto& [n, m] : {std::pair<Index, Index>{40, 30}, {30, 40}}) {
    const Matrix cost = Matrix::NullaryExpr(n, m, [&] { return random.uniform(); });
    const Matrix cotangent = Matrix::NullaryExpr(n, m, [&] { return random.normal(); });
    const Vector a = Vector::Constant(n, 1.0 / double(n)), b = Vector::Constant(m, 1.0 / double(m));
    transport::SolverOptions options{.epsilon = 0.01, .rows = transport::Ball{.spread = 0.2}, .tolerance = 1e-11};
    const transport::Solution expected = transport::solve(cost, a, b, options);
    ASSERT_TRUE(expected.converged());
    const Matrix gradient = expected.gradient(), pulled = expected.pull_back(cotangent);
    (void)as_team(3, [&, n = n, m = m](Team& team) {
      const RowShare share = team.share_of(std::max(n, m));
      const auto own = [&](const Matrix& all) {
        return n >= m ? Matrix(all.middleRows(share.first, share.count))
                      : Matrix(all.middleCols(share.first, share.count));
      };
      transport::SolverOptions shared = options;
      shared.team = &team;
      transport::Solver solver(shared);
      const transport::Solution solution = solver.solve(own(cost), a, b);
      EXPECT_TRUE(solution.converged()) << solution.message();
      EXPECT_LT((solution.plan() - own(expected.plan())).norm(), 1e-10);
      EXPECT_NEAR(solution.value(), expected.value(), 1e-11);
      EXPECT_LT((solution.gradient() - own(gradient)).norm(), 1e-8 * gradient.norm());
      EXPECT_LT((solution.pull_back(own(cotangent)) - own(pulled)).norm(), 1e-8 * pulled.norm());
      EXPECT_EQ(complaint([&] { (void)solver.solve(cost, a, b); }).substr(0, 13),
                "cost is " + std::to_string(n) + "x" + std::to_string(m));
      return 0;
    });
  }
}

TEST(Team, SharedPlansHaveNoSingleEntries) {
  const Problem problem = drawn(20, 20, 2);
  const auto bound = Linear{}.bound_to(problem);
  const std::string said = as_team(2, [&](Team& team) {
    Evaluator evaluator(problem, *bound, {.epsilon = {.value = 0.1}, .team = &team});
    (void)evaluator.links(Vector::Constant(bound->parameters(), 0.1));
    return complaint([&] { (void)evaluator.plan_entry(0, 0); });
  });
  EXPECT_EQ(said, "a plan that several processes share cannot be asked for single entries");
}

}  // namespace
}  // namespace unshuffle
