// Every minimiser on functions whose minimum is known.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "optimise/optimiser.hpp"

namespace unshuffle {
namespace {

const Watch go_on = [](int, const Sample&, double) { return true; };

Sample rosenbrock(const Vector& u, bool) {
  Sample s{0, Vector::Zero(u.size()), Matrix::Zero(u.size(), u.size())};
  for (Index k = 0; k + 1 < u.size(); ++k) {
    const double a = u(k + 1) - u(k) * u(k);
    const double b = 1 - u(k);
    s.value += 100 * a * a + b * b;
    s.gradient(k) += -400 * a * u(k) - 2 * b;
    s.gradient(k + 1) += 200 * a;
    s.hessian(k, k) += 1200 * u(k) * u(k) - 400 * u(k + 1) + 2;
    s.hessian(k, k + 1) -= 400 * u(k);
    s.hessian(k + 1, k) -= 400 * u(k);
    s.hessian(k + 1, k + 1) += 200;
  }
  return s;
}

struct Quadratic {
  Matrix hessian;
  Vector linear;

  Quadratic(Index size, std::uint64_t seed, double shift) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    const Matrix a = Matrix::NullaryExpr(size, size, [&] { return normal(engine); });
    hessian = a * a.transpose() / double(size) + shift * Matrix::Identity(size, size);
    linear = Vector::NullaryExpr(size, [&] { return normal(engine); });
  }
  Sample operator()(const Vector& u, bool) const {
    return {linear.dot(u) + 0.5 * u.dot(hessian * u), linear + hessian * u, hessian};
  }
};

TEST(TrustRegion, reaches_the_minimum_of_rosenbrock_in_a_few_steps) {
  for (const Index size : {2, 6}) {
    const Vector start = Vector::Constant(size, -1.2);
    const Minimum found = trust_region(rosenbrock, start, {.max_iterations = 200, .gradient_tolerance = 1e-8}, go_on);
    EXPECT_TRUE(found.converged) << found.message;
    EXPECT_LT(found.iterations, 80);
    EXPECT_LT(found.gradient_norm, 1e-4);
  }
}

TEST(TrustRegion, leaves_a_saddle) {
  const auto saddle = [](const Vector& u, bool) {
    const double x = u(0);
    const double y = u(1);
    Sample s{x * x - y * y + 0.25 * y * y * y * y, Vector(2), Matrix::Zero(2, 2)};
    s.gradient << 2 * x, -2 * y + y * y * y;
    s.hessian.diagonal() << 2, -2 + 3 * y * y;
    return s;
  };
  const Minimum found = trust_region(saddle, Vector::Zero(2), {}, go_on);
  EXPECT_NEAR(std::abs(found.at(1)), std::sqrt(2.0), 1e-5);
}

TEST(TrustRegion, stops_on_the_surface_of_the_ball_where_the_tangential_gradient_vanishes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Quadratic f(5, seed, seed % 2 == 0 ? 0.1 : -0.5);  // convex and indefinite ones
    const StopRule stop{.max_iterations = 100, .gradient_tolerance = 1e-7, .noise = 1e-14, .radius = 0.3};
    const Minimum found = trust_region(f, Vector::Zero(5), stop, go_on);
    EXPECT_TRUE(found.converged) << found.message;
    EXPECT_LE(found.at.norm(), 0.3 * (1 + 1e-9));
    EXPECT_LT(free_gradient_norm(found.at, f(found.at, false).gradient, 0.3), 1e-5);
    const Minimum mapped = lbfgs(f, Vector::Zero(5), stop, go_on);
    EXPECT_NEAR(mapped.value, found.value, 1e-3 * std::abs(found.value)) << seed;
  }
}

TEST(TrustRegion, solves_the_hard_case_of_the_quadratic_in_a_ball) {
  const Vector eigenvalues = (Vector(3) << -1, 2, 3).finished();
  const Vector c = (Vector(3) << 0, 1, 1).finished();
  const Vector v = minimise_quadratic_in_ball(eigenvalues, c, 2.0);
  EXPECT_NEAR(v.norm(), 2.0, 1e-9);
  EXPECT_NEAR(v(1), -1.0 / 3, 1e-9);
  EXPECT_NEAR(v(2), -1.0 / 4, 1e-9);
}

TEST(Lbfgs, reaches_the_minimum_of_rosenbrock) {
  const Minimum found =
      lbfgs(rosenbrock, Vector::Constant(10, -1.2), {.max_iterations = 500, .gradient_tolerance = 1e-7}, go_on);
  EXPECT_TRUE(found.converged) << found.message;
  EXPECT_LT(found.gradient_norm, 1e-6);
}

TEST(Lbfgs, solves_quadratics_over_random_sizes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Quadratic f(Index(2 + seed), seed, 0.01);
    const Minimum found =
        lbfgs(f, Vector::Zero(Index(2 + seed)), {.max_iterations = 500, .gradient_tolerance = 1e-8}, go_on);
    EXPECT_TRUE(found.converged) << found.message;
    EXPECT_LT(f(found.at, false).gradient.norm(), 1e-6);
  }
}

TEST(Lbfgs, copes_with_values_that_carry_rounding_noise) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Quadratic f(6, seed, 0.1);
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> jitter(-1e-10, 1e-10);
    const auto noisy = [&](const Vector& u, bool h) {
      Sample s = f(u, h);
      s.value = (s.value + 100) * (1 + jitter(engine));
      return s;
    };
    for (const bool newton : {false, true}) {
      const StopRule stop{.max_iterations = 300, .gradient_tolerance = 1e-6, .noise = 1e-10};
      const Minimum found =
          newton ? trust_region(noisy, Vector::Zero(6), stop, go_on) : lbfgs(noisy, Vector::Zero(6), stop, go_on);
      EXPECT_TRUE(found.converged) << found.message;
      EXPECT_LT(f(found.at, false).gradient.norm(), 1e-3);
    }
  }
}

TEST(TrustRegion, takes_gains_below_the_noise_floor_for_none) {
  const Quadratic f(6, 1, 0.1);
  for (const double floor : {0.0, 1e6}) {
    const Minimum found = trust_region(f, Vector::Zero(6), {.noise_floor = floor}, go_on);
    EXPECT_TRUE(found.converged) << found.message;
    EXPECT_EQ(found.iterations > 0, floor == 0);
  }
}

TEST(Momentum, walks_down_a_quadratic_and_says_when_steps_ran_out) {
  const Quadratic f(4, 3, 0.5);
  const StopRule stop{.max_iterations = 5000, .gradient_tolerance = 1e-8};
  EXPECT_TRUE(momentum_descent(f, Vector::Zero(4), stop, {.learning_rate = 1e-2, .momentum = 0.9}, go_on).converged);
  EXPECT_TRUE(adam(f, Vector::Zero(4), {.max_iterations = 20000, .gradient_tolerance = 1e-5},
                   {.learning_rate = 1e-2, .momentum = 0}, go_on)
                  .converged);
  const Minimum short_walk =
      momentum_descent(f, Vector::Zero(4), {.max_iterations = 3}, {.learning_rate = 1e-4, .momentum = 0.9}, go_on);
  EXPECT_FALSE(short_walk.converged);
  EXPECT_EQ(short_walk.iterations, 3);
}

TEST(Optimisers, stop_when_the_watch_says_so) {
  const Watch stop_at_two = [](int iteration, const Sample&, double) { return iteration < 2; };
  const Vector start = Vector::Constant(3, -1.2);
  EXPECT_TRUE(trust_region(rosenbrock, start, {}, stop_at_two).stopped);
  EXPECT_TRUE(lbfgs(rosenbrock, start, {}, stop_at_two).stopped);
  EXPECT_TRUE(adam(rosenbrock, start, {}, {}, stop_at_two).stopped);
}

}  // namespace
}  // namespace unshuffle
