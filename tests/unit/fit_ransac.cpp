// Least squares on linked rows, and consensus when part of the links is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "links/linked.hpp"
#include "starts/ransac.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"

namespace unshuffle {
namespace {

struct Simulated {
  Problem problem;
  Vector truth;  // without intercept
};

// y = z·w + noise with the responses of a share of the rows exchanged among themselves.
Simulated half_linked(Index n, Index e, double shuffled, double noise, std::uint64_t seed, Index outputs = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Simulated made;
  made.problem.z = Matrix::NullaryExpr(n, e, [&] { return 1 + normal(engine); });
  const Matrix w = Matrix::NullaryExpr(e, outputs, [&] { return normal(engine); });
  made.truth = w.reshaped();
  made.problem.y = made.problem.z * w;
  made.problem.y += Matrix::NullaryExpr(n, outputs, [&] { return noise * normal(engine); });
  std::vector<Index> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), Index{0});
  std::shuffle(rows.begin(), rows.end(), engine);
  rows.resize(static_cast<std::size_t>(shuffled * double(n)));
  const Matrix before = made.problem.y;
  for (std::size_t i = 0; i < rows.size(); ++i) made.problem.y.row(rows[i]) = before.row(rows[(i + 1) % rows.size()]);
  return made;
}

std::vector<Index> all_rows(Index n) {
  std::vector<Index> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), Index{0});
  return rows;
}

Consensus consensus_of(const Problem& problem, const Model& bound, std::uint64_t seed) {
  const auto rows = all_rows(problem.responses());
  return ransac(bound, link(problem, bound, rows, rows), RandomStream(seed, 0));
}

TEST(LeastSquares, recovers_exact_coefficients_of_linked_rows) {
  const Simulated data = half_linked(60, 3, 0.0, 0.0, 4, 2);
  const auto model = Linear{false}.bound_to(data.problem);
  const auto rows = all_rows(60);
  const auto solved = least_squares(*model, link(data.problem, *model, rows, rows), Vector::Zero(6));
  EXPECT_LT((solved.parameters - data.truth).norm(), 1e-12);
}

TEST(LeastSquares, fits_the_sine_model_from_a_near_start) {
  Simulated data = half_linked(200, 2, 0.0, 0.0, 5);
  const auto model = Sine{}.bound_to(data.problem);
  data.problem.y = predict_linked(*model, data.problem.x, data.problem.z, data.truth);
  const auto rows = all_rows(200);
  const Vector near = data.truth.array() + 0.05;
  const auto solved = least_squares(*model, link(data.problem, *model, rows, rows), near);
  EXPECT_LT((solved.parameters - data.truth).norm(), 1e-8);
}

TEST(Ransac, finds_the_coefficients_when_half_the_links_are_wrong) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Simulated data = half_linked(1000, 5, 0.5, 0.2, seed);
    const auto model = Linear{}.bound_to(data.problem);
    const Consensus found = consensus_of(data.problem, *model, seed);
    EXPECT_TRUE(found.significant());
    EXPECT_LT((found.parameters.tail(5) - data.truth).norm(), 0.08) << seed;
    EXPECT_NEAR(found.inlier_share, 0.5, 0.1) << seed;
    EXPECT_NEAR(found.noise_sd, 0.2, 0.04) << seed;
    const Vector off = found.parameters.tail(5) - data.truth;
    const Vector sd = found.covariance.diagonal().tail(5).cwiseSqrt();
    EXPECT_LT(off.cwiseQuotient(sd).cwiseAbs().maxCoeff(), 5.0) << seed;
  }
}

TEST(Ransac, works_when_most_links_are_wrong_and_with_several_outputs) {
  const Simulated few = half_linked(1000, 3, 0.75, 0.1, 3);
  const auto model = Linear{}.bound_to(few.problem);
  EXPECT_LT((consensus_of(few.problem, *model, 1).parameters.tail(3) - few.truth).norm(), 0.05);

  const Simulated several = half_linked(600, 3, 0.6, 0.1, 3, 2);
  const auto wide = Linear{false}.bound_to(several.problem);
  EXPECT_LT((consensus_of(several.problem, *wide, 1).parameters - several.truth).norm(), 0.05);
}

TEST(Ransac, copes_with_noise_free_links) {
  const Simulated data = half_linked(400, 3, 0.5, 0.0, 8);
  const auto model = Linear{}.bound_to(data.problem);
  EXPECT_LT((consensus_of(data.problem, *model, 1).parameters.tail(3) - data.truth).norm(), 1e-6);
}

TEST(Ransac, does_not_take_a_response_that_repeats_for_a_consensus) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Simulated data = half_linked(2000, 1, 0.7, 0.2, seed);
    data.problem.y = (20 * data.problem.y).array().round() / 20;
    const auto model = Linear{}.bound_to(data.problem);
    const Consensus found = consensus_of(data.problem, *model, seed);
    EXPECT_LT(std::abs(found.parameters(1) - data.truth(0)), 0.1) << seed;
    EXPECT_NEAR(found.noise_sd, 0.2, 0.06) << seed;
  }
}

TEST(Ransac, reports_no_consensus_when_every_link_is_wrong) {
  int false_alarms = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Simulated data = half_linked(500, 3, 1.0, 0.3, seed);
    const auto model = Linear{}.bound_to(data.problem);
    const auto rows = all_rows(500);
    const auto found = ransac(*model, link(data.problem, *model, rows, rows), RandomStream(seed, 0),
                              RansacOptions{.rows = 500, .max_samples = 1000});
    false_alarms += found.significant() ? 1 : 0;
  }
  EXPECT_EQ(false_alarms, 0);
}

TEST(Ransac, gives_the_same_answer_every_time) {
  const Simulated data = half_linked(500, 4, 0.5, 0.1, 8);
  const auto model = Linear{}.bound_to(data.problem);
  EXPECT_EQ(consensus_of(data.problem, *model, 7).parameters, consensus_of(data.problem, *model, 7).parameters);
}

}  // namespace
}  // namespace unshuffle
