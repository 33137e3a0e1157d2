#include "unshuffle/tables/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

TEST(Simulate, same_seed_same_sample) {
  const Simulation a = simulate({.rows = 50, .seed = 3});
  const Simulation b = simulate({.rows = 50, .seed = 3});
  const Simulation c = simulate({.rows = 50, .seed = 4});
  EXPECT_EQ(a.problem.y, b.problem.y);
  EXPECT_EQ(a.problem.z, b.problem.z);
  EXPECT_EQ(a.permutation, b.permutation);
  EXPECT_NE(a.problem.y, c.problem.y);
}

TEST(Simulate, the_permutation_links_responses_with_their_features) {
  const Simulation sample = simulate({.rows = 40, .dim_z = 3, .noise = 0, .seed = 1});
  for (Index row = 0; row < 40; ++row) {
    const Index feature = sample.permutation[static_cast<std::size_t>(row)];
    EXPECT_NEAR(sample.problem.z.row(feature).dot(sample.coefficients), sample.problem.y(row, 0), 1e-12);
  }
  const std::set<Index> distinct(sample.permutation.begin(), sample.permutation.end());
  EXPECT_EQ(distinct.size(), 40u);
}

TEST(Simulate, the_share_asked_for_is_shuffled) {
  const auto moved = [](double share) {
    const Simulation sample = simulate({.rows = 400, .shuffle = share, .seed = 2});
    Index count = 0;
    for (std::size_t row = 0; row < 400; ++row) count += sample.permutation[row] != static_cast<Index>(row);
    return count;
  };
  EXPECT_EQ(moved(0), 0);
  EXPECT_NEAR(static_cast<double>(moved(0.5)), 200, 5);
  EXPECT_NEAR(static_cast<double>(moved(1)), 400, 5);
}

TEST(Simulate, features_have_the_mean_asked_for_and_variance_one) {
  const Simulation sample = simulate({.rows = 20000, .dim_z = 1, .mean = 3, .seed = 5});
  const Vector z = sample.problem.z.col(0);
  EXPECT_NEAR(z.mean(), 3, 0.03);
  EXPECT_NEAR((z.array() - z.mean()).square().mean(), 1, 0.04);
}

TEST(Simulate, snr_sets_the_noise_variance) {
  const Simulation sample = simulate({.snr = 100, .seed = 6});
  EXPECT_DOUBLE_EQ(sample.options.noise, sample.coefficients.squaredNorm() / 100);
  // The error of the oracle on new rows is close to the share of the variance that is noise.
  EXPECT_NEAR(least_squares_test_error(sample, true), 1.0 / 101, 0.002);
  EXPECT_GT(least_squares_test_error(sample, false), 0.05);
}

TEST(Simulate, the_nonlinear_design_is_a_sum_of_sines) {
  const Simulation sample = simulate({.design = Design::nonlinear, .rows = 10, .shuffle = 0, .noise = 0});
  EXPECT_EQ(sample.problem.x.cols(), 2);
  EXPECT_EQ(sample.problem.z.cols(), 3);
  double expected = 0;
  for (Index k = 0; k < 2; ++k) expected += std::sin(sample.problem.x(4, k) * sample.coefficients[k]);
  for (Index k = 0; k < 3; ++k) expected += std::sin(sample.problem.z(4, k) * sample.coefficients[2 + k]);
  EXPECT_NEAR(sample.problem.y(4, 0), expected, 1e-12);
}

TEST(Simulate, impossible_options_are_refused) {
  EXPECT_THROW((void)simulate({.rows = 1}), InvalidInput);
  EXPECT_THROW((void)simulate({.dim_x = 2}), InvalidInput);
  EXPECT_THROW((void)simulate({.shuffle = 1.5}), InvalidInput);
  EXPECT_THROW((void)simulate({.noise = -1}), InvalidInput);
  EXPECT_THROW((void)simulate({.design = Design::nonlinear, .snr = 10}), InvalidInput);
}

}  // namespace
}  // namespace unshuffle
