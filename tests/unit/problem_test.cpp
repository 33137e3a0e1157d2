#include "unshuffle/tables/problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/complaint.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/feasible.hpp"

namespace unshuffle {
namespace {

Problem small_problem() {
  Problem problem;
  problem.y = Vector::LinSpaced(4, 0, 3);
  problem.z = Matrix::Random(3, 2);
  return problem;
}

std::string complaint(const std::function<void(Problem&)>& spoil) {
  Problem problem = small_problem();
  spoil(problem);
  try {
    validate(problem);
  } catch (const BadData& error) {
    return error.what();
  }
  return "";
}

TEST(Problem, tables_of_different_length_are_fine) { EXPECT_NO_THROW(validate(small_problem())); }

TEST(Problem, a_nan_is_named_with_row_and_column) {
  EXPECT_EQ(complaint([](Problem& p) { p.z(2, 1) = std::nan(""); }),
            "feature table, row 3: column \"z2\" is nan; a finite number was expected");
}

TEST(Problem, an_infinity_in_x_is_named_by_its_given_name) {
  EXPECT_EQ(complaint([](Problem& p) {
              p.x = Matrix::Constant(4, 1, 1.0);
              p.x(0, 0) = INFINITY;
              p.x_names = {"age"};
            }),
            "response table, row 1: column \"age\" is inf; a finite number was expected");
}

TEST(Problem, empty_tables_are_refused) {
  EXPECT_EQ(complaint([](Problem& p) { p.y.resize(0, 1); }), "the response table has no rows");
  EXPECT_EQ(complaint([](Problem& p) { p.z.resize(0, 2); }), "the feature table has no rows");
  EXPECT_EQ(complaint([](Problem& p) { p.z.resize(3, 0); }), "the feature table has no feature column");
  EXPECT_EQ(complaint([](Problem& p) { p.y.resize(4, 0); }), "the response table has no response column");
}

TEST(Problem, x_must_have_the_rows_of_y) {
  EXPECT_EQ(complaint([](Problem& p) { p.x = Matrix::Zero(3, 1); }),
            "x has 3 rows and y has 4; both belong to the response table and must agree");
}

TEST(Problem, a_negative_weight_is_refused_and_a_zero_weight_accepted) {
  EXPECT_EQ(complaint([](Problem& p) {
              p.response_weights = Vector{{1, -1, 1, 1}};
            }),
            "response table, row 2: weight is -1; a finite number of at least 0 was expected");
  EXPECT_EQ(complaint([](Problem& p) { p.response_weights = Vector{{1, 0, 1, 1}}; }), "");
  EXPECT_EQ(complaint([](Problem& p) { p.feature_weights = Vector::Zero(3); }),
            "feature table: all 3 weights are 0; at least one above 0 was expected");
  EXPECT_EQ(complaint([](Problem& p) { p.feature_weights = Vector::Ones(2); }),
            "feature table: 2 weights for 3 rows; one per row was expected");
}

TEST(Problem, group_labels_must_cover_both_tables_and_meet) {
  EXPECT_EQ(complaint([](Problem& p) {
              p.response_groups = {0, 0, 1, 1};
            }),
            "feature table: 0 group labels for 3 rows; one per row was expected");
  EXPECT_EQ(complaint([](Problem& p) {
              p.response_groups = {0, 0, 0, 0};
              p.feature_groups = {1, 1, 1};
            }),
            "no group occurs in both tables; no row could match any other");
}

TEST(Problem, known_pairs_must_exist_and_be_one_to_one) {
  EXPECT_EQ(complaint([](Problem& p) {
              p.known = {{4, 0}};
            }),
            "known pair 1: response table has no row 4; 0 to 3 was expected");
  EXPECT_EQ(complaint([](Problem& p) {
              p.known = {{0, 0}, {1, 0}};
            }),
            "known pair 2: row 0 of the feature table is already in another pair");
  EXPECT_EQ(complaint([](Problem& p) {
              p.known = {{0, 1}, {0, 1}};
            }),
            "known pair 2: rows 0 and 1 are given as a pair twice");
}

TEST(Problem, completing_fills_weights_and_names) {
  Problem problem = small_problem();
  problem.feature_weights = Vector{{1, 0, 3}};
  problem = completed(problem);
  EXPECT_DOUBLE_EQ(problem.response_weights.sum(), 1);
  EXPECT_DOUBLE_EQ(problem.feature_weights[2], 0.75);
  EXPECT_EQ(problem.y_names, std::vector<std::string>{"y"});
  EXPECT_EQ(problem.z_names, (std::vector<std::string>{"z1", "z2"}));
  EXPECT_EQ(problem.x.rows(), 4);
  EXPECT_EQ(problem.x.cols(), 0);
}

TEST(Problem, without_groups_everything_is_one_block) {
  const auto blocks = blocks_of(completed(small_problem()));
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].response_rows.size(), 4u);
  EXPECT_EQ(blocks[0].feature_rows.size(), 3u);
  EXPECT_DOUBLE_EQ(blocks[0].share, 1);
}

TEST(Problem, blocks_ascend_by_label_and_leave_out_lone_groups) {
  Problem problem = small_problem();
  problem.response_groups = {7, 2, 7, 5};
  problem.feature_groups = {2, 7, 9};
  const auto blocks = blocks_of(completed(problem));
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].response_rows, std::vector<Index>{1});
  EXPECT_EQ(blocks[0].feature_rows, std::vector<Index>{0});
  EXPECT_EQ(blocks[1].response_rows, (std::vector<Index>{0, 2}));
  EXPECT_DOUBLE_EQ(blocks[1].share, 0.5);
}

TEST(Problem, one_row_or_fewer_rows_than_parameters_cannot_be_fitted) {
  Problem problem = small_problem();
  EXPECT_NO_THROW(require_enough_rows(problem, 3));
  EXPECT_THROW(require_enough_rows(problem, 4), BadData);
  problem.z.conservativeResize(1, 2);
  EXPECT_THROW(require_enough_rows(problem, 1), BadData);
}

TEST(Problem, a_constant_feature_is_named) {
  Problem problem = small_problem();
  problem.z.col(1).setConstant(2);
  try {
    require_varying_features(problem);
    FAIL();
  } catch (const BadData& error) {
    EXPECT_STREQ(error.what(), "column \"z2\" is 2 in every row; leave it out, or fit without an intercept");
  }
}

/// What a fit of a linear model to the problem, spoilt like this, would be refused for.
std::string refusal(const std::function<void(Problem&)>& spoil, bool intercept = true) {
  Problem problem = small_problem();
  problem.z = Matrix{{1, 2}, {2, -1}, {4, 0.5}};
  problem.y.conservativeResize(4, 2);
  problem.y.col(1) << 1, 0, 0, 2;
  spoil(problem);
  return unshuffle::complaint([&] { require_estimable(problem, *Linear{intercept}.bound_to(problem)); });
}

TEST(Problem, responses_that_do_not_vary_cannot_be_fitted) {
  EXPECT_EQ(refusal([](Problem&) {}), "");
  const auto second_constant = [](Problem& p) { p.y.col(1).setConstant(3); };
  EXPECT_EQ(refusal(second_constant), "column \"y2\" is 3 in every row; leave it out");
  EXPECT_EQ(refusal(second_constant, false), "column \"y2\" is 3 in every row; leave it out");
  EXPECT_EQ(refusal([](Problem& p) { p.y = Vector::Zero(4); }),
            "column \"y1\" is 0 in every row; there is nothing to explain, nor to link rows by");
}

TEST(Problem, a_feature_far_from_zero_beside_its_spread_cannot_be_told_from_an_intercept) {
  const auto moved = [](double by) { return [by](Problem& p) { p.z.col(0).array() += by; }; };
  EXPECT_EQ(refusal(moved(1e6)), "");
  EXPECT_EQ(refusal(moved(-1e7)),
            "column \"z1\" has the mean -1e+07 and the standard deviation 1.25, too far from 0 to be told from an "
            "intercept; subtract a constant from it first");
  EXPECT_EQ(refusal(moved(1e7), false), "");
}

TEST(Problem, numbers_that_cannot_be_squared_cannot_be_fitted) {
  const auto scaled = [](Matrix Problem::*table, double by) { return [=](Problem& p) { p.*table *= by; }; };
  for (const double by : {1e69, 1e-69}) {
    EXPECT_EQ(refusal(scaled(&Problem::y, by)), "");
    EXPECT_EQ(refusal(scaled(&Problem::z, by)), "");
  }
  EXPECT_EQ(refusal(scaled(&Problem::y, 1e300)),
            "column \"y1\" holds the magnitude 3e+300; 1e-70 to 1e+70 was expected: rescale it");
  EXPECT_EQ(refusal(scaled(&Problem::z, 1e-300)),
            "column \"z1\" varies by no more than 3e-300; 1e-70 to 1e+70 was expected: rescale it");
  EXPECT_NE(refusal([](Problem& p) { p.x = 1e300 * p.y; }), "");
}

}  // namespace
}  // namespace unshuffle
