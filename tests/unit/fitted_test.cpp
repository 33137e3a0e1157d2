// The queries of a fit, and that a saved fit gives the same answers.
#include "unshuffle/fitted/fitted.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/random.hpp"
#include "support/complaint.hpp"
#include "support/fits.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/registry.hpp"

namespace unshuffle {
namespace {

/// Skewed features of distinct laws, so that they can be told apart; links are lost, or a tenth of them wrong.
Problem sample(Index rows, bool in_order) {
  RandomStream random(21, 0);
  Problem problem;
  problem.x = Matrix::NullaryExpr(rows, 1, [&] { return random.normal(); });
  problem.z = Matrix::NullaryExpr(rows, 2, [&] { return -std::log(random.uniform()); });
  problem.z.col(1) = problem.z.col(1).array().sqrt();
  problem.y = 1 + 0.5 * problem.x.array() + 2 * problem.z.col(0).array() - problem.z.col(1).array();
  problem.y += Matrix::NullaryExpr(rows, 1, [&] { return 0.1 * random.normal(); });
  problem.z.topRows(in_order ? rows / 10 : rows).colwise().reverseInPlace();
  problem.order = in_order ? RowOrder::probably_linked : RowOrder::unrelated;
  return problem;
}

class FittedFile : public testing::Test {
 protected:
  [[nodiscard]] Fitted saved_and_loaded(const Fitted& made) const {
    made.save(path_);
    return Fitted::load(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_ = std::filesystem::path(testing::TempDir()) /
                      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".json");
};

void expect_same(const Matching& one, const Matching& other) {
  ASSERT_EQ(one.pairs.size(), other.pairs.size());
  for (std::size_t k = 0; k < one.pairs.size(); ++k) {
    EXPECT_EQ(one.pairs[k].response_row, other.pairs[k].response_row);
    EXPECT_EQ(one.pairs[k].feature_row, other.pairs[k].feature_row);
    EXPECT_NEAR(one.pairs[k].probability, other.pairs[k].probability, 1e-9);  // weights may be normalised twice
  }
  EXPECT_EQ(one.unmatched_responses, other.unmatched_responses);
  EXPECT_EQ(one.unmatched_features, other.unmatched_features);
}

TEST_F(FittedFile, predicts_as_the_fit_that_was_saved) {
  const Problem problem = sample(200, true);
  for (const char* model : {"linear", "spline:3"}) {
    const Fitted made = fit(problem, *make_model(model, true), Mixture{});
    const Fitted loaded = saved_and_loaded(made);
    EXPECT_EQ(loaded.parameters(), made.parameters());
    EXPECT_EQ(loaded.result().covariance, made.result().covariance);
    EXPECT_EQ(loaded.predict(problem.x, problem.z), made.predict(problem.x, problem.z));
    const Predictions before = made.predict_with_errors(problem.x, problem.z),
                      after = loaded.predict_with_errors(problem.x, problem.z);
    EXPECT_EQ(after.values, before.values);
    EXPECT_EQ(after.std_errors, before.std_errors);
  }
}

TEST_F(FittedFile, keeps_the_estimator_with_its_options_and_what_auto_chose) {
  const RobotRobust robust{.unmatched = 0.1, .robot = {.smoothing = {.epsilon = 1e-3}, .limit = {5}}};
  const Fitted loaded = saved_and_loaded(fit(sample(60, true), Linear{}, robust));
  EXPECT_EQ(all_as_text(loaded.context().estimator), all_as_text(robust));
  const Fitted chosen = saved_and_loaded(fit(sample(100, true), Linear{}, Auto{.precision = {.tolerance = 1e-8}}));
  EXPECT_EQ(all_as_text(chosen.context().chosen), all_as_text(Mixture{.precision = {.tolerance = 1e-8}}));
}

TEST_F(FittedFile, matches_the_same_tables_as_the_fit_that_was_saved) {
  const Problem problem = sample(120, false);
  const Estimator starts_there = Robot{.starts = starting_at(Vector{{1, 0.5, 2, -1}})};
  for (const Estimator& method : {Estimator(Entropic{}), Estimator(Auto{}), starts_there,
                                  Estimator(RobotRobust{.robot = std::get<Robot>(starts_there)})}) {
    const Fitted made = fit(problem, Linear{}, method);
    const Fitted loaded = saved_and_loaded(made);
    for (const LinkRows rows : {LinkRows::kept, LinkRows::all}) {
      const Matching before = made.match(rows);
      EXPECT_GT(before.pairs.size(), 60U) << name_of(method);
      expect_same(loaded.match(problem, rows), before);
      expect_same(made.match(problem, rows), before);
    }
    EXPECT_EQ(complaint<InvalidInput>([&] { (void)loaded.match(); }),
              "the fitted rows are not available; pass the tables to match");
  }
}

TEST_F(FittedFile, has_the_intervals_of_the_fit_that_was_saved) {
  const Problem problem = completed(sample(300, true));
  const Fitted by_errors = fit(problem, Linear{}, Mixture{});
  ASSERT_EQ(by_errors.result().covariance.rows(), 4) << by_errors.summary();
  Result result = by_errors.result();
  result.margins = Matrix{{0.1, 0.2}, {0.3, 0.1}, {0.2, 0.2}, {0.05, 0.4}};
  const Fitted by_profile(result, by_errors.context(), Linear{}.bound_to(problem));
  EXPECT_NEAR(by_profile.intervals()(3, 1) - by_profile.parameters()(3), 0.4, 1e-12);
  for (const Fitted* made : {&by_errors, &by_profile})
    EXPECT_LT((saved_and_loaded(*made).intervals() - made->intervals()).norm(), 1e-12);
}

TEST(Fitted, intervals_are_by_standard_errors_and_widen_with_their_level) {
  const Fitted made = fit(sample(200, true), Linear{}, Mixture{});
  ASSERT_EQ(made.result().margins.size(), 0);
  const Vector errors = made.result().std_errors();
  ASSERT_EQ(errors.size(), 4);
  const auto widths = [&](double level) {
    const Matrix ends = made.intervals(level);
    EXPECT_LT(((ends.col(0) + ends.col(1)) / 2 - made.parameters()).norm(), 1e-12);
    return Vector(ends.col(1) - ends.col(0));
  };
  EXPECT_LT((widths(0.95) - 2 * 1.959963984540054 * errors).norm(), 1e-12);
  EXPECT_LT((widths(0.6826894921370859) - 2 * errors).norm(), 1e-9);
  EXPECT_EQ(made.intervals(), made.intervals(0.95));
  Vector before = Vector::Zero(4);
  for (const double level : {0.1, 0.5, 0.9, 0.95, 0.99, 0.999}) {
    const Vector now = widths(level);
    EXPECT_TRUE((now.array() > before.array()).all()) << level;
    before = now;
  }
}

TEST(Fitted, margins_of_profiles_are_stretched_to_other_levels) {
  Result result;
  result.parameters = Vector{{1}};
  result.covariance = Matrix{{1}};
  result.margins = Matrix{{0.1, 0.3}};
  const Matrix wide = result.intervals(0.99);
  EXPECT_NEAR((wide(0, 1) - 1) / (1 - wide(0, 0)), 3, 1e-12);
  EXPECT_NEAR(1 - wide(0, 0), 0.1 * 2.575829303548901 / 1.959963984540054, 1e-9);
}

TEST(Fitted, coefficients_say_what_the_result_says) {
  const Fitted made = fit(sample(200, true), Linear{}, Mixture{});
  const Result& result = made.result();
  for (const double level : {0.95, 0.5}) {
    const std::vector<Coefficient> coefficients = made.coefficients(level);
    ASSERT_EQ(coefficients.size(), result.names.size());
    for (std::size_t k = 0; k < coefficients.size(); ++k) {
      const auto row = static_cast<Index>(k);
      EXPECT_EQ(coefficients[k].name, result.names[k]);
      EXPECT_EQ(coefficients[k].value, result.parameters(row));
      EXPECT_EQ(coefficients[k].std_error, result.std_errors()(row));
      EXPECT_EQ(coefficients[k].low, result.intervals(level)(row, 0));
      EXPECT_EQ(coefficients[k].high, result.intervals(level)(row, 1));
    }
  }
}

TEST(Fitted, without_standard_errors_coefficients_have_none_and_predictions_no_intervals) {
  const Problem problem = sample(60, true);
  const Fitted made = fit(problem, Linear{}, Rr{});
  ASSERT_EQ(made.result().covariance.size(), 0);
  for (const Coefficient& one : made.coefficients()) {
    EXPECT_TRUE(std::isnan(one.std_error) && std::isnan(one.low) && std::isnan(one.high)) << one.name;
  }
  EXPECT_THROW((void)made.predict_with_errors(problem.x, problem.z), InvalidInput);
}

TEST(Fitted, auto_that_ends_in_oracle_has_the_plan_of_the_oracle) {
  Problem problem = sample(60, false);
  problem.z.conservativeResize(50, Eigen::NoChange);
  for (Index j = 0; j < 50; ++j) problem.known.push_back({59 - j, j});
  const Fitted automatic = fit(problem, Linear{}, Auto{}), oracle = fit(problem, Linear{}, Oracle{});
  ASSERT_EQ(name_of(automatic.context().chosen), "oracle") << automatic.result().choice;
  EXPECT_EQ(automatic.result().plan.matched_share, oracle.result().plan.matched_share);
  EXPECT_EQ(automatic.parameters(), oracle.parameters());
  const EvaluatorOptions expected = oracle.plan_options(problem), found = automatic.plan_options(problem);
  EXPECT_EQ(found.response_side.index(), expected.response_side.index());
  EXPECT_EQ(found.feature_side.index(), expected.feature_side.index());
  expect_same(automatic.match(), oracle.match());
}

}  // namespace
}  // namespace unshuffle
