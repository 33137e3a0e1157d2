// Predictions with standard errors: against differences of the model, and against new draws of the parameters.
#include "unshuffle/fitted/predict.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "core/random.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {
namespace {

Matrix normal_matrix(Index rows, Index columns, RandomStream& random) {
  return Matrix::NullaryExpr(rows, columns, [&] { return random.normal(); });
}

struct Given {
  Problem problem;
  std::unique_ptr<Model> model;
  Vector w;
  Matrix covariance;
};

Given given(const std::string& name, Index outputs, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Given made;
  made.problem.y = normal_matrix(5000, outputs, random);
  made.problem.x = normal_matrix(5000, 2, random);
  made.problem.z = normal_matrix(5000, 3, random);
  made.problem = completed(made.problem);
  made.model = make_model(name, true)->bound_to(made.problem);
  const Index p = made.model->parameters();
  made.w = normal_matrix(p, 1, random);
  const Matrix root = 1e-3 * normal_matrix(p, p, random);
  made.covariance = root * root.transpose();
  return made;
}

TEST(PredictionErrors, are_the_spread_of_predictions_over_uncertain_parameters) {
  for (const auto& [name, outputs] : {std::pair("linear", 1), {"linear", 3}, {"sine", 1}, {"spline:4", 1}}) {
    const Given g = given(name, outputs, 3);
    const Predictions made = predict_with_errors(*g.model, g.problem.x, g.problem.z, g.w, g.covariance);
    EXPECT_EQ(made.values, predict_linked(*g.model, g.problem.x, g.problem.z, g.w));
    // Rows on both sides of a change of chunks; the parameters move along each root of the covariance.
    const Matrix root = g.covariance.llt().matrixL();
    for (const Index row : {0, 4095, 4096, 4999}) {
      const Matrix x = g.problem.x.row(row), z = g.problem.z.row(row);
      Matrix variance = Matrix::Zero(1, outputs);
      for (Index k = 0; k < g.w.size(); ++k) {
        const Matrix difference =
            (predict_linked(*g.model, x, z, g.w + root.col(k)) - predict_linked(*g.model, x, z, g.w - root.col(k))) / 2;
        variance += difference.cwiseAbs2();
      }
      const Matrix expected = variance.cwiseSqrt();
      EXPECT_LT((made.std_errors.row(row) - expected).norm(), 1e-3 * expected.norm()) << name << " " << row;
    }
  }
}

TEST(PredictionErrors, intervals_hold_new_responses_as_often_as_they_say) {
  const Given g = given("linear", 1, 5);
  const double noise = 0.02;
  const auto [low, high] =
      predict_with_errors(*g.model, g.problem.x, g.problem.z, g.w, g.covariance).interval(Vector::Constant(1, noise));
  const Matrix root = g.covariance.llt().matrixL();
  RandomStream random(7, 1);
  double inside = 0;
  constexpr int draws = 200;
  for (int draw = 0; draw < draws; ++draw) {
    const Vector truth = g.w + root * normal_matrix(g.w.size(), 1, random);
    const Matrix y = predict_linked(*g.model, g.problem.x, g.problem.z, truth) + noise * normal_matrix(5000, 1, random);
    inside += ((y.array() > low.array()) && (y.array() < high.array())).cast<double>().mean();
  }
  EXPECT_NEAR(inside / draws, 0.95, 0.01);
}

}  // namespace
}  // namespace unshuffle
