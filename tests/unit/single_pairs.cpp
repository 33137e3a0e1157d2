// Known pairs and groups of two rows are blocks with nothing to decide; they are told without solving anything.
#include <gtest/gtest.h>

#include "core/random.hpp"
#include "support/fits.hpp"
#include "unshuffle/core/stop.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/function.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {
namespace {

/// y = x + z W + noise; some pairs known, one group of two rows, the rest in two groups.
Problem drawn(Index outputs) {
  RandomStream random(5, 0);
  const auto normal = [&] { return random.normal(); };
  Problem problem;
  problem.z = Matrix::NullaryExpr(24, 2, normal);
  problem.x = Matrix::NullaryExpr(24, 1, normal);
  problem.y = problem.z * Matrix::NullaryExpr(2, outputs, normal) + 0.1 * Matrix::NullaryExpr(24, outputs, normal);
  problem.y.colwise() += problem.x.col(0);
  for (Index i = 0; i < 24; ++i) problem.response_groups.push_back(i == 23 ? 2 : i % 2);
  problem.feature_groups = problem.response_groups;
  problem.known = {{0, 4}, {3, 3}, {6, 2}, {9, 21}};
  problem.response_weights = Vector::NullaryExpr(24, [&] { return 0.5 + random.uniform(); });
  return completed(std::move(problem));
}

struct Seen {
  Evaluation at;
  SoftLinks links;
  double entry, cost, nothing;
};

Seen seen(const Problem& problem, const Model& bound, const EvaluatorOptions& options) {
  Evaluator evaluator(problem, bound, options);
  const Vector w = Vector::LinSpaced(bound.parameters(), -0.5, 0.8);
  Seen made{evaluator.evaluate(w), evaluator.links(w), evaluator.plan_entry(9, 21), evaluator.cost_entry(9, 21),
            evaluator.plan_entry(9, 1)};
  for (Index k = 0; k < w.size(); ++k) {
    constexpr double h = 1e-5;
    const auto at = [&](double step) { return evaluator.evaluate(w + step * Vector::Unit(w.size(), k)).objective; };
    EXPECT_NEAR(made.at.gradient[k], (at(h) - at(-h)) / (2 * h), 1e-4 * (1 + std::abs(made.at.gradient[k])));
  }
  return made;
}

/// A prior that says nothing makes blocks of single pairs be solved like all others.
Problem with_idle_prior(Problem problem) {
  problem.prior = {{1, 1, 1.0}};
  return problem;
}

void expect_same(const Seen& found, const Seen& expected, double tolerance) {
  EXPECT_TRUE(found.at.converged);
  EXPECT_NEAR(found.at.objective, expected.at.objective, tolerance * (1 + std::abs(expected.at.objective)));
  EXPECT_NEAR(found.at.transport_cost, expected.at.transport_cost, tolerance * (1 + expected.at.transport_cost));
  EXPECT_LE((found.at.gradient - expected.at.gradient).norm(), tolerance * (1 + expected.at.gradient.norm()));
  EXPECT_LE((found.links.response_mass - expected.links.response_mass).norm(), tolerance);
  EXPECT_LE((found.links.feature_mass - expected.links.feature_mass).norm(), tolerance);
  EXPECT_NEAR(found.entry, expected.entry, tolerance);
  EXPECT_NEAR(found.cost, expected.cost, tolerance * (1 + expected.cost));
  EXPECT_EQ(found.nothing, 0);
}

TEST(SinglePairs, are_what_solving_them_gives) {
  const auto bent = make_function_model(
      []<class T>(std::span<const double> x, std::span<const double> z, std::span<const T> w) -> T {
        return w[0] * z[0] + w[1] * z[0] * z[1] + w[2] * x[0];
      },
      {"slope", "bend", "height"});
  for (const Objective objective : {Objective::transport, Objective::entropic}) {
    for (const bool ball : {false, true}) {
      EvaluatorOptions options{.objective = objective, .epsilon = {.value = 0.05, .relative = false}};
      options.tolerance = 1e-12;
      if (ball) options.response_side = options.feature_side = transport::Ball{.spread = 0.25};
      const Problem two = drawn(2), one = drawn(1);
      const auto of_two = Linear{}.bound_to(two), of_one = Linear{}.bound_to(one);
      options.backend = Backend::dense;
      expect_same(seen(two, *of_two, options), seen(with_idle_prior(two), *of_two, options), 1e-8);
      const Seen dense = seen(with_idle_prior(one), *of_one, options);
      expect_same(seen(one, *of_one, options), dense, 1e-8);
      const auto curved = bent.bound_to(one);
      expect_same(seen(one, *curved, options), seen(with_idle_prior(one), *curved, options), 1e-8);
      options.backend = Backend::sorted;
      expect_same(seen(one, *of_one, options), dense, 1e-7);
    }
  }
}

TEST(SinglePairs, have_the_curvature_of_linked_rows) {
  const Problem problem = drawn(1);
  const auto bound = Linear{}.bound_to(problem);
  Evaluator evaluator(
      problem, *bound,
      {.objective = Objective::entropic, .epsilon = {.value = 0.05, .relative = false}, .tolerance = 1e-12});
  const Vector w = Vector::LinSpaced(bound->parameters(), -0.5, 0.8);
  const Matrix hessian = evaluator.evaluate(w, true).hessian;
  for (Index k = 0; k < w.size(); ++k) {
    constexpr double h = 1e-5;
    const auto at = [&](double step) { return evaluator.evaluate(w + step * Vector::Unit(w.size(), k)).gradient; };
    EXPECT_LE((hessian.col(k) - (at(h) - at(-h)) / (2 * h)).norm(), 1e-4 * hessian.norm());
  }
}

TEST(SinglePairs, may_be_all_there_is) {
  Problem problem = drawn(1);
  problem.response_groups.clear();
  problem.feature_groups.clear();
  problem.known.clear();
  for (Index i = 0; i < 24; ++i) problem.known.push_back({i, (7 * i) % 24});
  for (const Estimator& method : {Estimator(Auto{}), Estimator(Oracle{}), Estimator(Robot{})}) {
    const Fitted fitted = fit(problem, Linear{}, method);
    EXPECT_TRUE(fitted.result().status == Status::converged) << fitted.result().message;
    for (const Match& pair : fitted.match().pairs) EXPECT_EQ(pair.feature_row, (7 * pair.response_row) % 24);
    EXPECT_EQ(fitted.match().pairs.size(), 24U);
  }
}

TEST(Stop, ends_a_fit_wherever_it_is) {
  std::atomic<bool> asked = true;
  const Problem problem = drawn(2);
  for (const Estimator& method : {Estimator(Robot{}), Estimator(Entropic{}), Estimator(Am{}), Estimator(Em{})}) {
    const StopScope scope(&asked);
    EXPECT_THROW((void)fit(problem, Linear{}, method), Stopped);
  }
  EXPECT_NO_THROW((void)fit(problem, Linear{}, Ls{}));
}

}  // namespace
}  // namespace unshuffle
