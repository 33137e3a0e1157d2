// Every model's pull_back, jacobian_part and curvature against central differences over random sizes.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "unshuffle/model/function.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spline.hpp"

namespace unshuffle {
namespace {

struct Draw {
  std::mt19937_64 engine;
  std::normal_distribution<double> normal;

  Matrix matrix(Index rows, Index cols) {
    return Matrix::NullaryExpr(rows, cols, [&] { return normal(engine); });
  }
  Index size(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(engine); }
};

Problem random_problem(Draw& draw, Index outputs) {
  const Index n = draw.size(6, 20);
  const Index m = draw.size(6, 20);
  const Index d = draw.size(0, 3);
  Problem problem;
  problem.y = draw.matrix(n, outputs);
  problem.x = draw.matrix(n, d);
  problem.z = draw.matrix(m, draw.size(1, 4));
  return problem;
}

void expect_pull_back_is_the_derivative(const Model& unbound, Index outputs, std::uint64_t seed) {
  Draw draw{std::mt19937_64(seed), {}};
  const Problem problem = random_problem(draw, outputs);
  const auto model = unbound.bound_to(problem);
  const Matrix x = model->basis(Side::response, problem.x);
  const Matrix z = model->basis(Side::feature, problem.z);
  const Vector w = draw.matrix(model->parameters(), 1);
  const Matrix cotangent = draw.matrix(z.rows(), outputs);
  const Matrix x_row = x.row(0);

  Vector gradient = Vector::Zero(w.size());
  model->pull_back(x_row, z, w, cotangent, gradient);
  for (Index k = 0; k < w.size(); ++k) {
    constexpr double h = 1e-5;
    Vector up = w;
    Vector down = w;
    up(k) += h;
    down(k) -= h;
    const double slope =
        (model->predict(x_row, z, up) - model->predict(x_row, z, down)).cwiseProduct(cotangent).sum() / (2 * h);
    EXPECT_NEAR(gradient(k), slope, 1e-7 * (1 + std::abs(slope))) << model->name() << " parameter " << k;
  }
}

void expect_parts_agree(const Model& unbound, std::uint64_t seed) {
  Draw draw{std::mt19937_64(seed), {}};
  const Problem problem = random_problem(draw, 1);
  const auto bound = unbound.bound_to(problem);
  const AdditiveModel& model = *bound->additive();
  for (const Side side : {Side::response, Side::feature}) {
    const Matrix rows = model.basis(side, side == Side::response ? problem.x : problem.z);
    const Vector w = draw.matrix(model.parameters(), 1);
    const Vector cotangent = draw.matrix(rows.rows(), 1);
    Vector pulled = Vector::Zero(w.size());
    model.pull_back_part(side, rows, w, cotangent, pulled);
    EXPECT_LT((model.jacobian_part(side, rows, w).transpose() * cotangent - pulled).norm(),
              1e-12 * (1 + pulled.norm()));

    Matrix curvature = Matrix::Zero(w.size(), w.size());
    model.add_curvature_part(side, rows, w, cotangent, curvature);
    for (Index k = 0; k < w.size(); ++k) {
      constexpr double h = 1e-5;
      Vector up = w;
      Vector down = w;
      up(k) += h;
      down(k) -= h;
      Vector change = Vector::Zero(w.size());
      model.pull_back_part(side, rows, up, cotangent, change);
      Vector below = Vector::Zero(w.size());
      model.pull_back_part(side, rows, down, cotangent, below);
      EXPECT_LT(((change - below) / (2 * h) - curvature.col(k)).norm(), 1e-6 * (1 + curvature.norm()));
    }
  }
}

FunctionModel exponential_decay() {
  return make_function_model(
      []<class T>(std::span<const double> x, std::span<const double> z, std::span<const T> w) -> T {
        using std::exp;
        const double first = x.empty() ? 1.0 : x[0];
        return exp(w[0] * z[0] * 0.3) * first + w[1] * w[2] * z[0];
      },
      {"rate", "height", "slope"});
}

FunctionModel two_output_plane() {
  return {[](auto, auto z, auto w, auto value) {
            value[0] = w[0] * z[0];
            value[1] = w[1] * w[1] * z[0];
          },
          [](auto, auto z, auto w, auto jacobian) { jacobian << z[0], 0.0, 0.0, 2 * w[1] * z[0]; },
          {"a", "b"},
          2};
}

TEST(ModelDerivatives, pull_back_matches_finite_differences_for_every_one_output_model) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_pull_back_is_the_derivative(Linear{}, 1, seed);
    expect_pull_back_is_the_derivative(Linear{false}, 1, seed);
    expect_pull_back_is_the_derivative(Sine{}, 1, seed);
    expect_pull_back_is_the_derivative(Spline{3}, 1, seed);
    expect_pull_back_is_the_derivative(exponential_decay(), 1, seed);
  }
}

TEST(ModelDerivatives, pull_back_matches_finite_differences_with_several_outputs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_pull_back_is_the_derivative(Linear{}, 3, seed);
    expect_pull_back_is_the_derivative(Spline{2}, 2, seed);
    expect_pull_back_is_the_derivative(two_output_plane(), 2, seed);
  }
}

TEST(ModelDerivatives, jacobian_and_curvature_of_a_part_match_its_pull_back) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_parts_agree(Linear{}, seed);
    expect_parts_agree(Linear{false}, seed);
    expect_parts_agree(Sine{}, seed);
    expect_parts_agree(Spline{4}, seed);
  }
}

TEST(ModelDerivatives, a_function_that_ignores_its_parameters_has_a_zero_derivative) {
  const auto constant = make_function_model(
      []<class T>(std::span<const double>, std::span<const double> z, std::span<const T>) { return T(z[0]); }, {"w"});
  Vector gradient = Vector::Zero(1);
  constant.pull_back(Matrix(1, 0), Matrix::Ones(4, 1), Vector::Ones(1), Matrix::Ones(4, 1), gradient);
  EXPECT_EQ(gradient(0), 0.0);
}

}  // namespace
}  // namespace unshuffle
