// The evaluator's gradient against finite differences for every policy, objective and model; its backends, row orders
// and thread counts against each other.
#include <gtest/gtest.h>
#include <omp.h>

#include <memory>

#include "oracle/transport_support.hpp"
#include "unshuffle/model/function.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spline.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {
namespace {

using transport::testing::Draw;
using transport::testing::name_of;
using transport::testing::policy_pairs;
using transport::testing::Worst;

struct Kind {
  std::string name;
  Index outputs, x_columns;
  std::function<std::unique_ptr<Model>(const Problem&)> bind;
};

std::vector<Kind> kinds() {
  auto product = [](const Problem& problem) {
    return make_function_model(
               []<class T>(std::span<const double> x, std::span<const double> z, std::span<const T> w) -> T {
                 using std::exp;
                 return w[0] * x[0] * z[0] + w[1] * exp(w[2] * z[1]);  // not additive in x and z
               },
               {"mixed", "height", "rate"})
        .bound_to(problem);
  };
  return {{"linear without x", 1, 0, [](const Problem& p) { return Linear().bound_to(p); }},
          {"linear with x", 1, 2, [](const Problem& p) { return Linear().bound_to(p); }},
          {"sine", 1, 1, [](const Problem& p) { return Sine().bound_to(p); }},
          {"spline", 1, 1, [](const Problem& p) { return Spline(2).bound_to(p); }},
          {"two outputs", 2, 1, [](const Problem& p) { return Linear().bound_to(p); }},
          {"product", 1, 1, product}};
}

struct Variant {
  bool weights = false, groups = false;
};

Problem random_problem(Draw& draw, const Kind& kind, Variant variant) {
  Problem problem;
  const Index n = draw.integer(8, 40), m = draw.integer(8, 40);
  problem.y = draw.normals(n, kind.outputs);
  problem.x = draw.normals(n, kind.x_columns);
  problem.z = draw.normals(m, 2);
  if (variant.weights) {
    problem.response_weights = 7 * draw.weights(n);
    problem.feature_weights = draw.weights(m);
  }
  if (variant.groups) {
    for (Index i = 0; i < n; ++i) problem.response_groups.push_back(i % 3);
    for (Index j = 0; j < m; ++j) problem.feature_groups.push_back((j + 1) % 3);
  }
  return completed(problem);
}

EvaluatorOptions options_for(const transport::MarginalPolicy& rows, const transport::MarginalPolicy& columns,
                             Objective objective, double epsilon, Backend backend = Backend::automatic) {
  EvaluatorOptions options;
  options.objective = objective;
  options.epsilon = {.value = epsilon, .relative = false};
  options.response_side = rows;
  options.feature_side = columns;
  options.tolerance = 1e-12;
  options.backend = backend;
  return options;
}

TEST(EvaluatorGradient, AgreesWithFiniteDifferencesForEveryPolicyObjectiveAndModel) {
  Draw draw(501);
  Worst worst("evaluator gradient");
  for (const Kind& kind : kinds())
    for (const auto& policies : policy_pairs(5)) {
      const auto& [rows, columns] = policies;
      const Variant variant{draw.chance(0.5), draw.chance(0.5)};
      const Problem problem = random_problem(draw, kind, variant);
      const auto model = kind.bind(problem);
      const double epsilon = draw.log_uniform(1e-2, 3);
      const Vector w = 0.7 * draw.normals(model->parameters()),
                   direction = draw.normals(model->parameters()).normalized();
      for (Objective objective : {Objective::transport, Objective::entropic}) {
        const std::string name = kind.name + " " + name_of(rows) + "/" + name_of(columns) + " " + name_of(objective) +
                                 " epsilon " + std::to_string(epsilon) + (variant.weights ? " weights" : "") +
                                 (variant.groups ? " groups" : "");
        SCOPED_TRACE(name);
        // Several outputs: by clouds or in full.
        const Backend backend = kind.outputs > 1 && draw.chance(0.5) ? Backend::clouds : Backend::automatic;
        Evaluator evaluator(problem, *model, options_for(rows, columns, objective, epsilon, backend));
        const Evaluation at = evaluator.evaluate(w);
        EXPECT_LE(at.marginal_error, 1e-10) << at.message;
        auto central = [&](double h) {
          return (evaluator.evaluate(w + h * direction).objective - evaluator.evaluate(w - h * direction).objective) /
                 (2 * h);
        };
        const double h = 0.01 * std::min(epsilon, 0.3);
        const double slope = (4 * central(h / 2) - central(h)) / 3;
        const double error = std::abs(slope - at.gradient.dot(direction)) / at.gradient.norm();
        EXPECT_LE(error, 1e-6);
        worst.see(error, name);
      }
    }
}

TEST(EvaluatorGradient, DoesNotDependOnTheBackend) {
  Draw draw(502);
  Worst worst("sorted and clouds against dense");
  for (const Kind& kind : kinds()) {
    if (kind.name == "product") continue;
    for (const auto& policies : policy_pairs(5)) {
      const auto& [rows, columns] = policies;
      const Problem problem = random_problem(draw, kind, {draw.chance(0.5), draw.chance(0.5)});
      const auto model = kind.bind(problem);
      const Vector w = 0.7 * draw.normals(model->parameters());
      const double epsilon = draw.log_uniform(1e-2, 3);
      for (Objective objective : {Objective::transport, Objective::entropic}) {
        const std::string name = kind.name + " " + name_of(rows) + "/" + name_of(columns) + " " + name_of(objective);
        SCOPED_TRACE(name);
        const Backend linear = kind.outputs > 1 ? Backend::clouds : Backend::sorted;
        Evaluator other(problem, *model, options_for(rows, columns, objective, epsilon, linear));
        Evaluator dense(problem, *model, options_for(rows, columns, objective, epsilon, Backend::dense));
        const Evaluation a = other.evaluate(w), b = dense.evaluate(w);
        const double error =
            std::max({(a.gradient - b.gradient).norm() / b.gradient.norm(),
                      std::abs(a.objective - b.objective) / (1 + std::abs(b.objective)),
                      std::abs(a.transport_cost - b.transport_cost) / (1 + std::abs(b.transport_cost))});
        EXPECT_LE(error, 1e-8);
        worst.see(error, name);
        const SoftLinks here = other.links(w), there = dense.links(w);
        EXPECT_LE((here.response_mass - there.response_mass).lpNorm<Eigen::Infinity>(), 1e-7);
        EXPECT_LE((here.feature_mass - there.feature_mass).lpNorm<Eigen::Infinity>(), 1e-7);
        EXPECT_NEAR(other.plan_entry(3, 2), dense.plan_entry(3, 2), 1e-9);
        EXPECT_EQ(std::isinf(other.cost_entry(3, 2)), std::isinf(dense.cost_entry(3, 2)));
        if (linear == Backend::clouds) {
          EXPECT_NEAR(other.largest_cost(w), dense.largest_cost(w), 1e-12);
        }
      }
    }
  }
}

template <class Rows>
Problem permuted(const Problem& problem, const Rows& response, const Rows& feature) {
  Problem moved = problem;
  moved.y = problem.y(response, Eigen::all);
  moved.x = problem.x(response, Eigen::all);
  moved.z = problem.z(feature, Eigen::all);
  moved.response_weights = problem.response_weights(response);
  moved.feature_weights = problem.feature_weights(feature);
  for (std::size_t k = 0; k < problem.response_groups.size(); ++k)
    moved.response_groups[k] = problem.response_groups[static_cast<std::size_t>(response[k])];
  for (std::size_t k = 0; k < problem.feature_groups.size(); ++k)
    moved.feature_groups[k] = problem.feature_groups[static_cast<std::size_t>(feature[k])];
  return moved;
}

TEST(EvaluatorGradient, DoesNotDependOnTheOrderOfTheRows) {
  Draw draw(503);
  Worst worst("permuted rows");
  for (const Kind& kind : kinds())
    for (bool groups : {false, true})
      for (Objective objective : {Objective::transport, Objective::entropic}) {
        const Problem problem = random_problem(draw, kind, {true, groups});
        const Problem moved =
            permuted(problem, draw.permutation(problem.responses()), draw.permutation(problem.features()));
        const auto model = kind.bind(problem), other = kind.bind(moved);
        const Vector w = 0.7 * draw.normals(model->parameters());
        const EvaluatorOptions options =
            options_for(transport::Ball{.spread = 0.1}, transport::Exact{}, objective, 0.1);
        const Evaluation a = Evaluator(problem, *model, options).evaluate(w),
                         b = Evaluator(moved, *other, options).evaluate(w);
        const double error = std::max((a.gradient - b.gradient).norm() / a.gradient.norm(),
                                      std::abs(a.objective - b.objective) / (1 + std::abs(a.objective)));
        EXPECT_LE(error, 1e-9) << kind.name << (groups ? " groups" : "") << " " << name_of(objective);
        worst.see(error, kind.name);
      }
}

TEST(EvaluatorGradient, IsTheSameToTheLastBitForAnyNumberOfThreads) {
  Draw draw(504);
  const int before = omp_get_max_threads();
  for (const Kind& kind : kinds())
    for (bool groups : {false, true}) {
      // Large enough for every parallel loop to be taken.
      Problem problem;
      problem.y = draw.normals(groups ? 300 : 260, kind.outputs);
      problem.x = draw.normals(problem.y.rows(), kind.x_columns);
      problem.z = draw.normals(290, 2);
      if (groups) {
        for (Index i = 0; i < problem.y.rows(); ++i) problem.response_groups.push_back(i % 4);
        for (Index j = 0; j < problem.z.rows(); ++j) problem.feature_groups.push_back(j % 4);
      }
      problem = completed(problem);
      const auto model = kind.bind(problem);
      const Vector w = 0.7 * draw.normals(model->parameters());
      for (Objective objective : {Objective::transport, Objective::entropic}) {
        const EvaluatorOptions options = options_for(transport::Exact{}, transport::Ball{.spread = 0.2}, objective, 0.3,
                                                     kind.outputs > 1 ? Backend::clouds : Backend::automatic);
        std::vector<Evaluation> results;
        for (int threads : {1, 2, 3}) {
          omp_set_num_threads(threads);
          Evaluator evaluator(problem, *model, options);
          results.push_back(evaluator.evaluate(w, evaluator.backend() == Backend::sorted));
        }
        for (const Evaluation& other : results) {
          EXPECT_EQ(other.objective, results[0].objective) << kind.name << " " << name_of(objective);
          EXPECT_EQ(other.gradient, results[0].gradient) << kind.name << " " << name_of(objective);
          EXPECT_EQ(other.hessian, results[0].hessian) << kind.name << " " << name_of(objective);
        }
      }
    }
  omp_set_num_threads(before);
}

TEST(EvaluatorGradient, TheHessianIsTheDerivativeOfTheGradient) {
  Draw draw(505);
  Worst worst("evaluator Hessian");
  for (const Kind& kind : kinds()) {
    if (kind.outputs > 1 || kind.name == "product") continue;
    for (bool groups : {false, true})
      for (Objective objective : {Objective::transport, Objective::entropic}) {
        const Problem problem = random_problem(draw, kind, {true, groups});
        const auto model = kind.bind(problem);
        const Vector w = 0.7 * draw.normals(model->parameters()),
                     direction = draw.normals(model->parameters()).normalized();
        Evaluator evaluator(problem, *model, options_for(transport::Exact{}, transport::Exact{}, objective, 0.3));
        const Evaluation at = evaluator.evaluate(w, true);
        auto central = [&](double h) -> Vector {
          return (evaluator.evaluate(w + h * direction).gradient - evaluator.evaluate(w - h * direction).gradient) /
                 (2 * h);
        };
        const Vector slope = (4 * central(1e-3) - central(2e-3)) / 3;
        const double error = (slope - at.hessian * direction).norm() / at.hessian.norm();
        EXPECT_LE(error, objective == Objective::transport ? 1e-4 : 1e-6) << kind.name << (groups ? " groups" : "");
        worst.see(error, kind.name + " " + name_of(objective));
      }
  }
}

TEST(EvaluatorGradient, RowsOfZeroWeightChangeNothing) {
  Draw draw(506);
  for (const Kind& kind : kinds()) {
    if (kind.name == "spline") continue;  // its knots come from all rows
    Problem problem = random_problem(draw, kind, {true, false});
    problem.response_weights[2] = problem.feature_weights[5] = 0;
    problem.response_weights /= problem.response_weights.sum();
    problem.feature_weights /= problem.feature_weights.sum();
    Problem other = problem;
    other.y.row(2).setConstant(1e3);
    other.z.row(5).setConstant(1e3);
    if (kind.name == "product") other.z.row(5).setConstant(3);
    const auto model = kind.bind(problem);
    const Vector w = 0.3 * draw.normals(model->parameters());
    const EvaluatorOptions options = options_for(transport::Exact{}, transport::Exact{}, Objective::transport, 0.3);
    const Evaluation a = Evaluator(problem, *model, options).evaluate(w),
                     b = Evaluator(other, *model, options).evaluate(w);
    EXPECT_NEAR(a.objective, b.objective, 1e-12 * std::abs(a.objective)) << kind.name;
    EXPECT_LE((a.gradient - b.gradient).norm(), 1e-11 * a.gradient.norm()) << kind.name;
  }
}

}  // namespace
}  // namespace unshuffle
