// Whole fits: from two tables to coefficients and matches.
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <algorithm>
#include <numeric>
#include <random>

#include "support/fits.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/function.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spline.hpp"

namespace unshuffle {
namespace {

struct Sensing {
  Problem problem;
  Vector oracle;  // least squares before the shuffle, intercept first
  Matrix test_z;
  Vector test_y;

  [[nodiscard]] double test_error(const Vector& w) const {
    const Vector predicted = (test_z * w.tail(test_z.cols())).array() + w(0);
    return (test_y - predicted).squaredNorm() / (test_y.array() - test_y.mean()).square().sum();
  }
};

// The paper's partially shuffled linear regression: features N(1, I), noise |w|²/snr, a share of the rows shuffled.
Sensing sensing(Index n, Index e, double shuffled, double snr, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  const auto features = [&](Index rows) {
    return Matrix(Matrix::NullaryExpr(rows, e, [&] { return 1 + normal(engine); }));
  };
  Sensing made;
  const Vector w = Vector::NullaryExpr(e, [&] { return normal(engine); });
  const double sd = w.norm() / std::sqrt(snr);
  const auto respond = [&](const Matrix& z) {
    return Vector(z * w + Vector::NullaryExpr(z.rows(), [&] { return sd * normal(engine); }));
  };
  made.problem.z = features(n);
  const Vector y = respond(made.problem.z);
  Matrix design(n, e + 1);
  design << Vector::Ones(n), made.problem.z;
  made.oracle = design.colPivHouseholderQr().solve(y);
  made.test_z = features(1000);
  made.test_y = respond(made.test_z);
  std::vector<Index> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), Index{0});
  std::shuffle(rows.begin(), rows.end(), engine);
  rows.resize(static_cast<std::size_t>(shuffled * double(n)));
  made.problem.y = y;
  for (std::size_t i = 0; i < rows.size(); ++i) made.problem.y(rows[i], 0) = y(rows[(i + 1) % rows.size()]);
  return made;
}

TEST(Fit, half_shuffled_rows_with_a_hint_predict_nearly_as_well_as_unshuffled_ones) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Sensing data = sensing(600, 5, 0.5, 100, seed);
    const Result found = fit(hinted(data.problem), Linear{}, Robot{}).result();
    EXPECT_EQ(found.status, Status::converged) << found.message;
    EXPECT_EQ(found.plan.backend, Backend::sorted);
    EXPECT_LT(data.test_error(found.parameters), 1.15 * data.test_error(data.oracle)) << seed;
    EXPECT_EQ(found.course.candidates.front().start, "ransac");
    EXPECT_FALSE(found.course.trace.empty());
  }
}

TEST(Fit, gives_bitwise_the_same_answer_for_any_number_of_threads) {
  const Sensing data = sensing(200, 2, 1.0, 100, 3);
  const Robot robot{.starts = {.starts = 4}, .limit = {15}};
  const Result one = fit(data.problem, Linear{}, robot, {.threads = 1}).result();
  const Result two = fit(data.problem, Linear{}, robot, {.threads = 2}).result();
  EXPECT_EQ(one.parameters, two.parameters);
  EXPECT_EQ(one.objective.value, two.objective.value);
}

TEST(Fit, every_optimiser_lowers_the_objective_from_the_same_start) {
  const Sensing data = sensing(120, 2, 0.0, 100, 5);
  Robot robot{.smoothing = {1e-2}, .starts = starting_at(data.oracle.array() + 0.3), .limit = {1}};
  robot.descent = {.optimizer = Optimizer::momentum, .step = {.learning_rate = 1e-12}};
  const double before = fit(data.problem, Linear{}, robot).result().objective.value;
  for (const Optimizer optimizer : {Optimizer::trust_region, Optimizer::lbfgs, Optimizer::momentum, Optimizer::adam}) {
    robot.limit = {100};
    robot.descent = {.optimizer = optimizer, .step = {.learning_rate = optimizer == Optimizer::adam ? 1e-2 : 1e-4}};
    EXPECT_LT(fit(data.problem, Linear{}, robot).result().objective.value, 0.9 * before) << int(optimizer);
  }
}

TEST(Fit, mini_batches_run_and_are_honest_about_convergence) {
  const Sensing data = sensing(150, 2, 0.0, 100, 6);
  const Robot robot{.limit = {10}, .descent = {.optimizer = Optimizer::adam, .step = {.batch = 40}}};
  const Result found = fit(hinted(data.problem), Linear{}, robot).result();
  EXPECT_EQ(found.status, Status::outer_not_converged);
  EXPECT_EQ(found.course.iterations, 10);
}

TEST(Fit, stops_when_progress_returns_false) {
  const Sensing data = sensing(150, 2, 1.0, 100, 6);
  const Execution stopped{.progress = [](double, double) { return false; }};
  EXPECT_EQ(fit(data.problem, Linear{}, Robot{}, stopped).result().status, Status::stopped);
}

TEST(Fit, epsilon_goes_down_through_the_stages_of_its_schedule) {
  const Sensing data = sensing(100, 2, 0.0, 100, 8);
  const Robot robot{.smoothing = {1e-3}, .descent = {.epsilon_start = 1e-1}};
  const Result found = fit(hinted(data.problem), Linear{}, robot).result();
  EXPECT_GT(found.course.trace.front().epsilon, 50 * found.course.trace.back().epsilon);
  EXPECT_NEAR(found.plan.epsilon_relative, 1e-3, 1e-9);
}

TEST(Fit, works_for_splines_sines_functions_and_several_outputs) {
  const Sensing data = sensing(80, 1, 0.0, 100, 9);
  const Robot robot{.smoothing = {1e-2}, .limit = {20}};
  EXPECT_TRUE(fit(hinted(data.problem), Spline{2}, robot).parameters().allFinite());
  EXPECT_TRUE(fit(hinted(data.problem), Sine{}, robot).parameters().allFinite());
  const auto line = make_function_model([]<class T>(std::span<const double>, std::span<const double> z,
                                                    std::span<const T> w) -> T { return w[0] + w[1] * z[0]; },
                                        {"a", "b"});
  const Result function = fit(hinted(data.problem), line, robot).result();
  EXPECT_EQ(function.plan.backend, Backend::dense);
  EXPECT_LT(data.test_error(function.parameters), 1.3 * data.test_error(data.oracle));
  Problem two = hinted(data.problem);
  two.y.conservativeResize(Eigen::NoChange, 2);
  two.y.col(1) = -two.y.col(0);
  const Result wide = fit(two, Linear{}, robot).result();
  EXPECT_EQ(wide.names.size(), 4U);
  EXPECT_EQ(wide.plan.backend, Backend::dense);
}

TEST(Fit, robust_fits_leave_rows_without_a_partner_unmatched) {
  Sensing data = sensing(200, 2, 0.0, 400, 10);
  for (Index i = 0; i < 20; ++i) data.problem.y(i, 0) += 40;  // responses that belong to nobody
  const Fitted found = fit(hinted(data.problem), Linear{}, RobotRobust{.unmatched = 0.1});
  EXPECT_LT(data.test_error(found.parameters()), 1.5 * data.test_error(data.oracle));
  EXPECT_LT(found.result().plan.matched_share, 0.97);

  const Matching matching = found.match();
  const auto is_unmatched = [&](Index row) {
    return std::binary_search(matching.unmatched_responses.begin(), matching.unmatched_responses.end(), row);
  };
  int outliers_left_out = 0;
  for (Index i = 0; i < 20; ++i) outliers_left_out += is_unmatched(i) ? 1 : 0;
  EXPECT_GE(outliers_left_out, 15);
  EXPECT_EQ(found.match(LinkRows::all).pairs.size(), 200U);
}

TEST(Fit, robust_fits_may_leave_out_what_the_larger_side_has_more) {
  const EvaluatorOptions made = plan_options(RobotRobust{.unmatched = 0.25}, 60, 100);
  // 45 pairs: a quarter of 60 responses, 55 of 100 features stay out. The spread of a share f is f / (1-f).
  EXPECT_NEAR(std::get<transport::Ball>(made.response_side).spread, 15.0 / 45.0, 1e-12);
  EXPECT_NEAR(std::get<transport::Ball>(made.feature_side).spread, 55.0 / 45.0, 1e-12);

  // Every response has a partner: 40 of the features stay out.
  const EvaluatorOptions exact = plan_options(RobotRobust{.unmatched = 0.25, .rho1 = 0}, 60, 100);
  EXPECT_TRUE(std::holds_alternative<transport::Exact>(exact.response_side));
  EXPECT_NEAR(std::get<transport::Ball>(exact.feature_side).spread, 40.0 / 60.0, 1e-12);
}

TEST(Match, sorted_and_dense_backends_agree_on_equal_sizes) {
  const Sensing data = sensing(60, 2, 1.0, 100, 11);
  const Problem whole = completed(data.problem);
  const auto bound = Linear{}.bound_to(whole);
  std::vector<std::vector<Match>> found;
  for (const Backend backend : {Backend::sorted, Backend::dense}) {
    EvaluatorOptions options;
    options.backend = backend;
    options.epsilon = {.value = 1e-2, .relative = true};
    Evaluator evaluator(whole, *bound, options);
    found.push_back(match(evaluator, whole, *bound, data.oracle).pairs);
  }
  ASSERT_EQ(found[0].size(), 60U);
  ASSERT_EQ(found[1].size(), 60U);
  for (std::size_t k = 0; k < 60; ++k) {
    EXPECT_EQ(found[0][k].feature_row, found[1][k].feature_row);
    EXPECT_NEAR(found[0][k].probability, found[1][k].probability, 1e-6);
  }
}

TEST(Match, pairs_stay_within_their_group_and_leftover_rows_are_listed) {
  Sensing data = sensing(40, 1, 1.0, 100, 12);
  Problem problem = data.problem;
  problem.z.conservativeResize(30, Eigen::NoChange);
  for (Index i = 0; i < 40; ++i) problem.response_groups.push_back(i % 2);
  for (Index j = 0; j < 30; ++j) problem.feature_groups.push_back(j % 2);
  const Problem whole = completed(problem);
  const auto bound = Linear{}.bound_to(whole);
  for (const Backend backend : {Backend::sorted, Backend::dense}) {
    EvaluatorOptions options;
    options.backend = backend;
    options.epsilon = {.value = 1e-2, .relative = true};
    Evaluator evaluator(whole, *bound, options);
    const Matching matching = match(evaluator, whole, *bound, data.oracle);
    EXPECT_EQ(matching.pairs.size(), 30U);
    EXPECT_EQ(matching.unmatched_responses.size(), 10U);
    for (const Match& pair : matching.pairs) {
      EXPECT_EQ(pair.response_row % 2, pair.feature_row % 2);
      EXPECT_GE(pair.probability, 0);
      EXPECT_LE(pair.probability, 1);
    }
  }
}

}  // namespace
}  // namespace unshuffle
