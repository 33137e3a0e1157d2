// The accuracy requested of the sorted backend, and the error it reports.
#include <gtest/gtest.h>

#include "oracle/transport_support.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {
namespace {

using transport::testing::Draw;

Problem large_problem(Draw& draw) {
  Problem problem;
  problem.y = 2 * draw.normals(4000, 1);
  problem.z = draw.normals(3000, 2);
  return completed(problem);
}

double objective_at(const Problem& problem, const Model& model, double accuracy, double& measured_error) {
  EvaluatorOptions options;
  options.accuracy = accuracy;
  options.tolerance = 1e-12;
  Evaluator evaluator(problem, model, options);
  const Vector w = Vector::LinSpaced(model.parameters(), 0.5, 1.5);
  const double objective = evaluator.evaluate(w).objective;
  measured_error = evaluator.links(w).measured_error;
  return objective;
}

TEST(EvaluatorAccuracy, IsMetByTheMeasuredErrorAndByTheObjective) {
  Draw draw(11);
  const Problem problem = large_problem(draw);
  const auto model = Linear().bound_to(problem);
  double error = 0;
  const double best = objective_at(problem, *model, 1e-12, error);
  EXPECT_LE(error, 3e-12);  // potentials of some hundred ε know no more digits
  for (const double accuracy : {1e-3, 1e-5, 1e-7, 1e-9, 1e-11}) {
    const double objective = objective_at(problem, *model, accuracy, error);
    EXPECT_LE(error, accuracy) << accuracy;
    EXPECT_NEAR(objective, best, 10 * accuracy * best) << accuracy;
  }
}

TEST(EvaluatorAccuracy, MeasuresAnErrorWhereOneIsLeft) {
  Draw draw(12);
  const Problem problem = large_problem(draw);
  const auto model = Linear().bound_to(problem);
  double loose = 0, tight = 0;
  (void)objective_at(problem, *model, 1e-2, loose);
  (void)objective_at(problem, *model, 1e-11, tight);
  EXPECT_GT(loose, 1e-7);
  EXPECT_LT(tight, 1e-10);
}

TEST(EvaluatorAccuracy, IsMetForEveryPolicyOnHeavyTails) {
  Draw draw(14);
  for (int trial = 0; trial < 12; ++trial) {
    Problem problem = large_problem(draw);
    if (trial % 2 == 0) problem.y = problem.y.array() * problem.y.array().square();
    const auto model = Linear().bound_to(problem);
    EvaluatorOptions options;
    options.epsilon.value = std::pow(10.0, -1 - trial % 5);
    if (trial % 3 == 1) options.response_side = options.feature_side = transport::Ball{.spread = 0.25};
    if (trial % 3 == 2) options.response_side = transport::KullbackLeibler{.strength = 0.5};
    Evaluator evaluator(problem, *model, options);
    const Vector w = Vector::Ones(model->parameters());
    const Evaluation evaluation = evaluator.evaluate(w);
    ASSERT_TRUE(evaluation.converged) << evaluation.message;
    EXPECT_LE(evaluator.links(w).measured_error, options.accuracy + 4000 * evaluation.marginal_error) << trial;
  }
}

TEST(EvaluatorAccuracy, IsZeroOnTheDenseBackend) {
  Draw draw(13);
  Problem problem;
  problem.y = draw.normals(20, 1);
  problem.z = draw.normals(20, 2);
  problem = completed(problem);
  const auto model = Linear().bound_to(problem);
  EvaluatorOptions options;
  options.backend = Backend::dense;
  Evaluator evaluator(problem, *model, options);
  EXPECT_EQ(evaluator.links(Vector::Ones(model->parameters())).measured_error, 0);
}

}  // namespace
}  // namespace unshuffle
