// Options, starts, coordinates and batches: everything before the first transport problem is solved.
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/random.hpp"
#include "estimators/descent.hpp"
#include "objective/batch.hpp"
#include "starts/joint_moments.hpp"
#include "starts/starts.hpp"
#include "support/complaint.hpp"
#include "support/fits.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"

namespace unshuffle {
namespace {

Problem simulated(Index n, Index m, Index groups, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Problem problem;
  problem.z = Matrix::NullaryExpr(m, 2, [&] { return normal(engine); });
  const Matrix other = n == m ? problem.z : Matrix(Matrix::NullaryExpr(n, 2, [&] { return normal(engine); }));
  problem.y = 3.0 + (2 * other.col(0) - other.col(1)).array();
  for (Index i = 0; groups > 0 && i < n; ++i) problem.response_groups.push_back(i % groups);
  for (Index j = 0; groups > 0 && j < m; ++j) problem.feature_groups.push_back(j % groups);
  return completed(problem);
}

std::string refusal(const Estimator& estimator) {
  return complaint<InvalidInput>([&] { validate(estimator); });
}

TEST(Estimators, impossible_values_are_refused_naming_option_value_and_constraint) {
  EXPECT_EQ(refusal(Robot{}), "");
  EXPECT_EQ(refusal(Robot{.smoothing = {-1}}), "epsilon = -1 must be > 0");
  EXPECT_EQ(refusal(RobotRobust{.unmatched = 1}), "unmatched = 1 must be above 0 and below 1");
  EXPECT_EQ(refusal(Robot{.descent = {.step = {.momentum = 1}}}), "momentum = 1 must be at least 0 and below 1");
  EXPECT_EQ(refusal(Entropic{.bootstrap = {1}}), "bootstrap = 1 must be 0 or at least 2");
  EXPECT_EQ(refusal(Robot{.descent = {.step = {.batch = 10}}}),
            "batch applies only with the optimizers momentum and adam");
  EXPECT_NE(refusal(Robot{.descent = {.gradient_tolerance = std::numeric_limits<double>::quiet_NaN()}}), "");
}

TEST(Estimators, robust_balls_follow_the_unmatched_fraction_or_rho) {
  const EvaluatorOptions made = plan_options(RobotRobust{.unmatched = 0.2, .rho2 = 0.01}, 50, 40);
  // ρ₂ lets 40·0.4/1.4 features go: 40/1.4 of the 50 responses find a partner, and the spread of a share f is f/(1-f).
  EXPECT_NEAR(std::get<transport::Ball>(made.response_side).spread, (50 - 40 / 1.4) / (40 / 1.4), 1e-12);
  EXPECT_DOUBLE_EQ(std::get<transport::Ball>(made.feature_side).spread, 0.4);
}

TEST(RandomStream, depends_on_seed_stream_and_counter_only) {
  RandomStream a(1, 2);
  RandomStream b(1, 2);
  RandomStream c(1, 3);
  EXPECT_EQ(a.bits(), b.bits());
  EXPECT_NE(a.bits(), c.bits());
  double sum = 0;
  double squares = 0;
  for (int k = 0; k < 20000; ++k) {
    const double value = a.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

TEST(Starts, least_squares_finds_the_plane_of_linked_rows) {
  const Problem problem = simulated(60, 60, 0, 2);
  const StartOptions options{.start = {StartKind::least_squares}};
  const auto bound = Linear{}.bound_to(problem);
  const auto starts = make_starts(problem, *bound, options, 0);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_LT((starts[0].parameters - (Vector(3) << 3, 2, -1).finished()).norm(), 1e-10);
  EXPECT_THROW((void)make_starts(simulated(50, 60, 0, 2), *bound, options, 0), InvalidInput);
}

TEST(Starts, random_ones_make_predictions_that_vary_like_y_around_its_mean) {
  const Problem problem = simulated(800, 800, 0, 3);
  const auto bound = Linear{}.bound_to(problem);
  const auto starts = make_starts(problem, *bound, {.start = {StartKind::random}, .starts = 5}, 0);
  ASSERT_EQ(starts.size(), 5U);
  const double spread = std::sqrt((problem.y.array() - problem.y.mean()).square().mean());
  for (const Start& start : starts) {
    const Matrix predicted = predict_linked(*bound, problem.x, problem.z, start.parameters);
    EXPECT_NEAR(predicted.mean(), problem.y.mean(), 0.2 * spread);
    EXPECT_NEAR(std::sqrt((predicted.array() - predicted.mean()).square().mean()), spread, 0.2 * spread);
  }
  EXPECT_NE(starts[0].parameters, starts[1].parameters);
}

TEST(Starts, group_means_are_linked_even_when_rows_are_not) {
  Problem problem = simulated(400, 400, 20, 4);
  // Exchange rows inside each group: their means do not notice.
  const Matrix y = problem.y;
  for (Index i = 0; i < 400; ++i) problem.y.row(i) = y.row((i + 20) % 400);
  const auto bound = Linear{}.bound_to(problem);
  const auto starts = make_starts(problem, *bound, {.start = {StartKind::group_means}}, 0);
  EXPECT_LT((starts[0].parameters - (Vector(3) << 3, 2, -1).finished()).norm(), 1e-10);
}

TEST(Starts, automatic_ones_use_the_row_hint_and_otherwise_number_eight) {
  const Problem problem = simulated(100, 100, 0, 5);
  const auto bound = Linear{}.bound_to(problem);
  EXPECT_EQ(make_starts(problem, *bound, {}, 0).size(), 8U);
  const auto by_order = make_starts(hinted(problem), *bound, {}, 0);
  ASSERT_FALSE(by_order.empty());
  EXPECT_EQ(by_order[0].kind.substr(0, 6), "ransac");
}

TEST(Starts, a_user_start_of_the_wrong_length_is_refused) {
  const Problem problem = simulated(30, 30, 0, 6);
  const StartOptions options = starting_at(Vector::Ones(2));
  EXPECT_THROW((void)make_starts(problem, *Linear{}.bound_to(problem), options, 0), InvalidInput);
}

TEST(EpsilonSchedule, goes_down_to_epsilon_by_equal_factors_in_at_most_nine_stages) {
  EXPECT_EQ(epsilon_schedule(0, 1e-3), std::vector<double>{1e-3});
  const auto few = epsilon_schedule(16e-3, 1e-3);
  ASSERT_EQ(few.size(), 3U);
  EXPECT_NEAR(few[1], 4e-3, 1e-12);
  const auto many = epsilon_schedule(1e6, 1e-6);
  EXPECT_EQ(many.size(), 9U);
  EXPECT_EQ(many.back(), 1e-6);
  EXPECT_TRUE(std::is_sorted(many.rbegin(), many.rend()));
}

TEST(Coordinates, of_a_start_that_knows_its_covariance_are_standard_errors) {
  const Problem problem = simulated(100, 100, 0, 7);
  const auto bound = Linear{}.bound_to(problem);
  const Matrix covariance = (Vector(3) << 0.04, 0.01, 0.09).finished().asDiagonal();
  const Start start{"ransac", Vector::Zero(3), covariance, 0.5};
  const Coordinates made = coordinates_for(start, problem, *bound, DescentOptions{}.start_confidence);
  EXPECT_LT((made.transform * made.transform.transpose() - covariance).norm(), 1e-12);
  EXPECT_NEAR(made.radius * made.radius, 7.815, 0.08);  // χ² with 3 degrees of freedom at 95 %
  EXPECT_TRUE(std::isinf(coordinates_for(start, problem, *bound, 0).radius));
}

/// Of the `count` starts of a kind, the first predicts every response; response k belongs to the k-th feature from the
/// end.
void expect_first_to_predict_reversed_rows(const Problem& given, const std::string& kind, std::ptrdiff_t count) {
  const Problem problem = completed(given);
  const auto bound = Linear{}.bound_to(problem);
  const std::vector<Start> starts = make_starts(problem, *bound, {}, 0);
  const auto of_kind = [&](const Start& start) { return start.kind == kind; };
  ASSERT_EQ(std::count_if(starts.begin(), starts.end(), of_kind), count);
  const Start& first = *std::find_if(starts.begin(), starts.end(), of_kind);
  const Matrix predicted = predict_linked(*bound, problem.x, problem.z, first.parameters);
  EXPECT_LT((predicted.colwise().reverse() - problem.y).norm(), 1e-8 * problem.y.norm());
}

TEST(Starts, spectra_find_a_rotation_although_no_link_is_known) {
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal;
  Problem problem;
  problem.z = Matrix::NullaryExpr(400, 3, [&] { return std::exp(0.5 * normal(engine)); });
  problem.z.col(1) *= 3;
  problem.z.col(2) *= 9;
  const Matrix rotation = Matrix::NullaryExpr(3, 3, [&] { return normal(engine); }).householderQr().householderQ();
  problem.y = (problem.z * rotation).rowwise() + Eigen::RowVector3d(1, -2, 3);
  problem.y = Matrix(problem.y.colwise().reverse());  // all links lost
  expect_first_to_predict_reversed_rows(problem, "spectra", 8);
}

TEST(Starts, a_single_response_that_sorts_the_rows_links_the_others_too) {
  std::mt19937_64 engine(4);
  std::normal_distribution<double> normal;
  Problem problem;
  problem.z = Matrix::NullaryExpr(300, 1, [&] { return std::exp(0.5 * normal(engine)); });
  problem.y = problem.z * Eigen::RowVector2d(3, -1);
  problem.y.col(1).array() += 2;
  problem.y = Matrix(problem.y.colwise().reverse());  // all links lost
  expect_first_to_predict_reversed_rows(problem, "a single response", 2);
}

TEST(Starts, alignment_links_clouds_that_only_their_distances_tell_apart) {
  std::mt19937_64 engine(6);
  std::normal_distribution<double> normal;
  Problem problem;
  problem.z = Matrix::NullaryExpr(120, 2, [&] { return std::exp(normal(engine)); });
  const Matrix rotation = Matrix::NullaryExpr(4, 2, [&] { return normal(engine); }).householderQr().householderQ();
  problem.y = problem.z * rotation.leftCols(2).transpose();  // a plane in four dimensions
  problem.y = Matrix(problem.y.colwise().reverse());         // all links lost
  expect_first_to_predict_reversed_rows(problem, "alignment", 1);
}

/// Features of three shapes mapped by a matrix that is no rotation, one tenth of the features left out of y.
Problem mapped_by_any_matrix(Index outputs, double noise, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Problem problem;
  problem.z = Matrix::NullaryExpr(400, 3, [&] { return normal(engine); });
  problem.z.col(0) = problem.z.col(0).array().exp();
  problem.z.col(1) = problem.z.col(1).array().square();
  const Matrix map = Matrix::NullaryExpr(3, outputs, [&] { return normal(engine); });
  problem.y = (problem.z * map).rowwise() + Eigen::RowVectorXd::LinSpaced(outputs, 1, 3);
  problem.y += noise * Matrix::NullaryExpr(400, outputs, [&] { return normal(engine); });
  problem.y = Matrix(problem.y.topRows(360).colwise().reverse());
  return completed(problem);
}

TEST(Starts, joint_moments_find_a_map_that_is_no_rotation_although_some_rows_have_no_partner) {
  for (const Index outputs : {2, 3, 5}) {
    const Problem problem = mapped_by_any_matrix(outputs, 0.05, std::uint64_t(outputs));
    const auto bound = Linear{}.bound_to(problem);
    const std::vector<Start> starts = make_starts(problem, *bound, {}, 0);
    double best = 1;  // residual relative to the spread
    for (const Start& start : starts) {
      if (start.kind != "joint moments") continue;
      const Matrix predicted = predict_linked(*bound, problem.x, problem.z, start.parameters);
      const Matrix apart = predicted.topRows(360).colwise().reverse() - problem.y;
      best = std::min(best, apart.norm() / (problem.y.rowwise() - problem.y.colwise().mean()).norm());
    }
    EXPECT_LT(best, 0.25) << outputs;
  }
}

TEST(Starts, joint_moments_are_exact_where_the_tables_are_images_of_each_other) {
  Problem problem = mapped_by_any_matrix(3, 0, 9);
  const Matrix map{{1, 2, -1}, {0.5, -1, 1}, {2, 1, 1}};
  problem.y = (problem.z * map).colwise().reverse();
  const std::vector<AffineMap> maps = maps_of_joint_moments(problem.y, problem.z, 4, RandomStream(0, 0));
  ASSERT_FALSE(maps.empty());
  EXPECT_LT(maps.front().misfit, 1e-8);
  EXPECT_LT((maps.front().linear - map).norm(), 1e-3);
  for (std::size_t k = 1; k < maps.size(); ++k) EXPECT_GE(maps[k].misfit, maps[k - 1].misfit);
  EXPECT_TRUE(maps_of_joint_moments(problem.y.leftCols(1), problem.z, 4, RandomStream(0, 0)).empty());
}

TEST(Batch, draws_rows_of_every_group_in_proportion) {
  const Problem problem = simulated(300, 150, 3, 8);
  RandomStream random(1, 1);
  const Problem batch = draw_batch(problem, 30, random);
  EXPECT_EQ(batch.responses(), 30);
  EXPECT_EQ(batch.features(), 30);
  EXPECT_EQ(std::count(batch.response_groups.begin(), batch.response_groups.end(), Index{1}), 10);
  EXPECT_NEAR(batch.response_weights.sum(), 1, 1e-12);
  EXPECT_NE(draw_batch(problem, 30, random).y, batch.y);
}

}  // namespace
}  // namespace unshuffle
