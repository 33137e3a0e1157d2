// Soft evidence for links: prior weights of pairs and soft keys, from the objective to the fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "likelihood/likelihood.hpp"
#include "objective/batch.hpp"
#include "starts/starts.hpp"
#include "support/complaint.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {
namespace {

Matrix normals(Index rows, Index columns, RandomStream& random) {
  return Matrix::NullaryExpr(rows, columns, [&] { return random.normal(); });
}

std::vector<Index> labels(Index rows, Index values, RandomStream& random) {
  std::vector<Index> made;
  for (Index k = 0; k < rows; ++k) made.push_back(random.below(values));
  return made;
}

/// Any two tables, with weights on a third of the pairs and a key of three values.
Problem any_problem(Index n, Index m, Index outputs, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Problem problem;
  problem.y = normals(n, outputs, random);
  problem.z = normals(m, 2, random);
  for (Index i = 0; i < n; ++i) {
    for (Index j = i % 3; j < m; j += 3) problem.prior.push_back({i, j, std::exp(2 * random.normal())});
  }
  problem.soft_keys.push_back({labels(n, 3, random), labels(m, 3, random), 0.8});
  return completed(problem);
}

EvaluatorOptions options_for(Objective objective, bool robust) {
  EvaluatorOptions options;
  options.objective = objective;
  options.epsilon = {.value = 0.3, .relative = false};
  options.tolerance = 1e-12;
  if (robust) options.response_side = options.feature_side = transport::Ball{.spread = 0.2};
  return options;
}

/// log ω of every pair, put together without the evaluator.
Matrix log_prior(const Problem& problem) {
  std::vector<Index> rows(std::size_t(problem.responses())), columns(std::size_t(problem.features()));
  std::iota(rows.begin(), rows.end(), 0);
  std::iota(columns.begin(), columns.end(), 0);
  Matrix sum = log_weights_of_keys(problem, rows, columns);
  for (const auto& [i, j, weight] : problem.prior) sum(i, j) += std::log(weight);
  return sum;
}

TEST(Prior, gradients_are_those_of_finite_differences) {
  for (const Index outputs : {1, 2}) {
    const Problem problem = any_problem(12, 9, outputs, 5);
    const auto bound = Linear{}.bound_to(problem);
    const Vector w = Vector::LinSpaced(bound->parameters(), -0.6, 0.8);
    for (const Objective objective : {Objective::transport, Objective::entropic}) {
      for (const bool robust : {false, true}) {
        Evaluator evaluator(problem, *bound, options_for(objective, robust));
        const Vector gradient = evaluator.evaluate(w).gradient;
        for (Index k = 0; k < w.size(); ++k) {
          constexpr double step = 1e-4;
          const Vector move = step * Vector::Unit(w.size(), k);
          const double slope =
              (evaluator.evaluate(w + move).objective - evaluator.evaluate(w - move).objective) / (2 * step);
          EXPECT_NEAR(gradient(k), slope, 1e-5 * (1 + std::abs(slope))) << outputs << robust << int(objective);
        }
      }
    }
  }
}

TEST(Prior, transport_cost_counts_residuals_and_the_entropic_value_counts_both) {
  const Problem problem = any_problem(10, 8, 1, 6);
  const auto bound = Linear{}.bound_to(problem);
  const Vector w{{0.1, 0.7, -0.4}};
  const double epsilon = 0.3;
  Matrix cost(10, 8);
  const Vector s = (problem.z * w.tail(2)).array() + w(0);
  for (Index j = 0; j < 8; ++j) cost.col(j) = (problem.y.col(0).array() - s(j)).square();
  const Matrix plan =
      transport::solve(cost - epsilon * log_prior(problem), {.epsilon = epsilon, .relative = false, .tolerance = 1e-12})
          .plan();
  const double residual = 10 * plan.cwiseProduct(cost).sum();
  Evaluator transport_objective(problem, *bound, options_for(Objective::transport, false));
  EXPECT_EQ(transport_objective.backend(), Backend::dense);
  EXPECT_NEAR(transport_objective.evaluate(w).objective, residual, 1e-8 * residual);
  Evaluator entropic(problem, *bound, options_for(Objective::entropic, false));
  const Evaluation both = entropic.evaluate(w);
  EXPECT_NEAR(both.transport_cost, residual, 1e-8 * residual);
  const double entropy = (plan.array() * (plan.array().log() - 1)).sum();
  EXPECT_NEAR(both.objective, residual + 10 * epsilon * (entropy - plan.cwiseProduct(log_prior(problem)).sum()), 1e-7);
}

TEST(Prior, equal_weights_are_no_evidence) {
  Problem problem = any_problem(10, 8, 2, 7);
  problem.soft_keys.clear();
  problem.prior.clear();
  const auto bound = Linear{}.bound_to(problem);
  const Vector w = Vector::LinSpaced(bound->parameters(), -1, 1);
  const Evaluation without = Evaluator(problem, *bound, options_for(Objective::transport, false)).evaluate(w);
  for (Index i = 0; i < 10; ++i) {
    for (Index j = 0; j < 8; ++j) problem.prior.push_back({i, j, 7.0});
  }
  const Evaluation with = Evaluator(problem, *bound, options_for(Objective::transport, false)).evaluate(w);
  EXPECT_NEAR(with.objective, without.objective, 1e-8);
  EXPECT_LT((with.gradient - without.gradient).norm(), 1e-7);
}

TEST(Prior, weights_are_odds_of_links) {
  Problem problem;
  problem.y = Vector{{1, 2}};
  problem.z = Vector{{3, 4}};
  problem.prior = {{0, 0, 3}};
  problem = completed(problem);
  const auto bound = Linear{}.bound_to(problem);
  EvaluatorOptions options;
  options.epsilon = {.value = 1, .relative = false};
  Evaluator evaluator(problem, *bound, options);
  // Nothing but the prior tells the two matchings apart: 3 to 1.
  const Matching matching = match(evaluator, problem, *bound, Vector::Zero(2));
  ASSERT_EQ(matching.pairs.size(), 2U);
  EXPECT_EQ(matching.pairs[0].feature_row, 0);
  EXPECT_NEAR(matching.pairs[0].probability, 0.75, 0.04);
}

TEST(Prior, a_soft_key_speaks_by_the_odds_of_agreement_over_those_by_chance) {
  Problem problem;
  problem.y = Vector::LinSpaced(3, 0, 1);
  problem.z = Vector::LinSpaced(5, 0, 1);
  problem.soft_keys.push_back({{0, 1, -1}, {0, 1, 1, 1, -1}, 0.9});
  const Matrix logs = log_weights_of_keys(problem, {0, 1, 2}, {0, 1, 4});
  EXPECT_NEAR(logs(0, 0), std::log(0.9 / 0.25), 1e-12);  // a rare value
  EXPECT_NEAR(logs(0, 1), std::log(0.1 / 0.75), 1e-12);
  EXPECT_NEAR(logs(1, 1), std::log(0.9 / 0.75), 1e-12);  // a common one
  EXPECT_NEAR(logs(1, 0), std::log(0.1 / 0.25), 1e-12);
  EXPECT_EQ(logs(0, 2), 0);  // not known
  EXPECT_EQ(logs.row(2).norm(), 0);
}

TEST(Prior, follows_its_rows_into_batches) {
  const Problem problem = any_problem(30, 24, 1, 8);
  RandomStream random(1, 1);
  const Problem batch = draw_batch(problem, 10, random);
  ASSERT_FALSE(batch.prior.empty());
  const Matrix whole = log_prior(problem);
  for (const auto& [i, j, weight] : batch.prior) {
    const Index row = std::find(problem.y.data(), problem.y.data() + 30, batch.y(i, 0)) - problem.y.data();
    const Index column = std::find(problem.z.data(), problem.z.data() + 24, batch.z(j, 0)) - problem.z.data();
    const auto& key = problem.soft_keys.front();
    EXPECT_EQ(batch.soft_keys.front().response_labels[std::size_t(i)], key.response_labels[std::size_t(row)]);
    EXPECT_EQ(batch.soft_keys.front().feature_labels[std::size_t(j)], key.feature_labels[std::size_t(column)]);
    EXPECT_NEAR(std::log(weight), whole(row, column) - log_weights_of_keys(problem, {row}, {column})(0, 0), 1e-12);
  }
}

/// Gaussian features of which nothing could be learnt without links; y is shuffled, the links are `order`.
struct Shuffled {
  Problem problem;
  std::vector<Index> order;
  Vector truth{{0.5, 1.5, -1.0}};
  double noise = 0.3;
};

Shuffled shuffled(Index n, std::uint64_t seed) {
  Shuffled made;
  RandomStream random(seed, 3);
  made.problem.z = normals(n, 2, random);
  made.order = sample_rows(n, n, random);
  shuffle(made.order, random);
  made.problem.y.resize(n, 1);
  for (Index i = 0; i < n; ++i) {
    made.problem.y(i, 0) = made.truth(0) + made.problem.z.row(made.order[std::size_t(i)]).dot(made.truth.tail(2)) +
                           made.noise * random.normal();
  }
  return made;
}

TEST(Prior, weights_that_are_right_seven_times_in_ten_identify_what_nothing_else_could) {
  Shuffled sample = shuffled(150, 2);
  RandomStream random(9, 9);
  // Every response has a candidate that is its partner with probability 0.7: odds of 0.7/0.3 to all others together.
  for (Index i = 0; i < 150; ++i) {
    const Index candidate = random.uniform() < 0.7 ? sample.order[std::size_t(i)] : random.below(150);
    sample.problem.prior.push_back({i, candidate, 0.7 / 0.3 * 149});
  }
  for (const Estimator& method : {Estimator(Auto{}), Estimator(Entropic{})}) {
    const Result found = fit(sample.problem, Linear{}, method).result();
    EXPECT_EQ(found.plan.backend, Backend::dense);
    EXPECT_LT((found.parameters - sample.truth).norm(), 0.15);
    EXPECT_NEAR(found.noise_sd, sample.noise, 0.1);
    EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
    ASSERT_EQ(found.std_errors().size(), 3);
    EXPECT_GT(found.std_errors().minCoeff(), 0.01);
    EXPECT_LT(found.std_errors().maxCoeff(), 0.1);
  }
  // An ε of the size of the noise, so that the weights are worth as much as residuals.
  const Robot robot{.smoothing = {.epsilon_abs = 2 * 0.3 * 0.3}};
  for (const Estimator& method : {Estimator(robot), Estimator(RobotRobust{.robot = robot})}) {
    const Fitted found = fit(sample.problem, Linear{}, method);
    EXPECT_LT((found.parameters() - sample.truth).norm(), 0.4) << name_of(method);
  }
}

TEST(Prior, soft_keys_identify_and_the_first_start_is_near_already) {
  Shuffled sample = shuffled(200, 4);
  RandomStream random(5, 5);
  for (int k = 0; k < 3; ++k) {
    SoftKey key{std::vector<Index>(200), labels(200, 8, random), 0.9};
    for (Index i = 0; i < 200; ++i) {
      key.response_labels[std::size_t(i)] =
          random.uniform() < 0.9 ? key.feature_labels[std::size_t(sample.order[std::size_t(i)])] : random.below(8);
    }
    sample.problem.soft_keys.push_back(std::move(key));
  }
  const Problem problem = completed(sample.problem);
  const auto bound = Linear{}.bound_to(problem);
  const std::vector<Start> starts = make_starts(problem, *bound, {}, 0);
  ASSERT_EQ(starts.front().kind, "prior means");
  EXPECT_LT((starts.front().parameters - sample.truth).norm(), 0.4);
  const Result found = fit(problem, Linear{}, Entropic{}).result();
  EXPECT_LT((found.parameters - sample.truth).norm(), 0.15);
}

TEST(Prior, the_information_by_differences_is_the_hessian) {
  Shuffled sample = shuffled(80, 3);
  const Problem problem = completed(sample.problem);
  const auto bound = Linear{}.bound_to(problem);
  Vector theta(4);
  theta << sample.truth, std::log(0.2);
  LikelihoodOptions sorted, dense;
  sorted.evaluator.tolerance = dense.evaluator.tolerance = 1e-11;
  dense.evaluator.backend = Backend::dense;
  const Matrix exact = LinkLikelihood(problem, *bound, sorted).information(theta);
  const Matrix differences = LinkLikelihood(problem, *bound, dense).information(theta);
  EXPECT_LT((exact - differences).norm(), 1e-2 * exact.norm());
}

std::string refusal(const Problem& problem, const Estimator& estimator) {
  return complaint<InvalidInput>([&] { (void)fit(problem, Linear{}, estimator); });
}

TEST(Prior, is_refused_where_it_would_be_passed_over) {
  const Problem problem = any_problem(20, 20, 1, 1);
  for (const auto& [traits, options] : all_estimators()) {
    if (traits.prior) continue;
    EXPECT_EQ(refusal(problem, *estimator_named(traits.name)),
              std::string(traits.name) +
                  " cannot use prior weights of pairs or soft groups; methods that can: auto, entropic, robot, "
                  "robot-robust");
  }
  const Robot sorted{.precision = {.backend = Backend::sorted}};
  EXPECT_NE(refusal(problem, sorted).find("need the dense one"), std::string::npos);
  EXPECT_NE(refusal(problem, Entropic{.bootstrap = {5}}).find("bootstrap draws links evenly"), std::string::npos);
}

template <class Change>
std::string complaint_of(Change change) {
  Problem problem = any_problem(4, 3, 1, 1);
  change(problem);
  return complaint<BadData>([&] { validate(problem); });
}

TEST(Prior, what_makes_no_sense_is_bad_data) {
  EXPECT_EQ(complaint_of([](Problem&) {}), "");
  EXPECT_EQ(complaint_of([](Problem& p) {
              p.prior = {{0, 3, 1}};
            }),
            "prior weight 1: feature table has no row 3; 0 to 2 was expected");
  EXPECT_EQ(complaint_of([](Problem& p) {
              p.prior = {{0, 0, 1}, {1, 2, 0}};
            }),
            "prior weight 2: rows 1 and 2 have the weight 0; a finite number > 0 was expected");
  EXPECT_EQ(complaint_of([](Problem& p) {
              p.prior = {{0, 0, 1}, {0, 0, 2}};
            }),
            "prior weight 2: rows 0 and 0 already have one");
  EXPECT_EQ(complaint_of([](Problem& p) {
              p.prior = {{0, 1, 2}};
              p.response_groups = {0, 1, 0, 1};
              p.feature_groups = {0, 1, 0};
            }),
            "prior weight 1: rows 0 and 1 are of different groups");
  EXPECT_NE(complaint_of([](Problem& p) { p.soft_keys.front().agreement = 1; }).find("below 1"), std::string::npos);
  EXPECT_NE(complaint_of([](Problem& p) { p.soft_keys.front().feature_labels.pop_back(); }).find("one per row"),
            std::string::npos);
}

}  // namespace
}  // namespace unshuffle
