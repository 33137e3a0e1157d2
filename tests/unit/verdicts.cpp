// Verdicts must not be better than the data allows: dependent columns, few rows, rows without a partner,
// weights, no noise.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "likelihood/wrong_links.hpp"
#include "support/fits.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spline.hpp"
#include "verdict/collinear.hpp"
#include "verdict/identifiability.hpp"
#include "verdict/recurrence.hpp"

namespace unshuffle {
namespace {

/// Columns of distinct laws, and 1 + 2 z1 - z2 beside them with a little noise.
Problem told_apart(Index rows, double noise, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Problem made;
  made.z.resize(rows, 2);
  for (Index i = 0; i < rows; ++i) made.z.row(i) << -std::log(1 - random.uniform()), 2 * std::pow(random.uniform(), 3);
  made.y = (1 + 2 * made.z.col(0).array() - made.z.col(1).array()).matrix();
  for (Index i = 0; i < rows; ++i) made.y(i, 0) += noise * random.normal();
  return made;
}

void shuffle_features(Problem& problem, std::uint64_t seed) {
  std::vector<Index> order(std::size_t(problem.features()));
  std::iota(order.begin(), order.end(), Index{0});
  RandomStream random(seed, 1);
  shuffle(order, random);
  problem.z = Matrix(problem.z(order, Eigen::all));
}

Fitted fitted(const Problem& problem, const Estimator& estimator, bool in_order) {
  return fit(ordered(problem, in_order ? RowOrder::probably_linked : RowOrder::unrelated), Linear{}, estimator);
}

Result result_of(const Problem& problem, const Estimator& estimator, bool in_order) {
  return fitted(problem, estimator, in_order).result();
}

std::vector<std::string> dependent(const Problem& problem, const Model& model) {
  const Problem whole = completed(problem);
  return collinear_parameters(whole, *model.bound_to(whole));
}

using Names = std::vector<std::string>;

TEST(Collinear, names_columns_that_are_combinations_of_others) {
  Problem problem = told_apart(100, 0.1, 1);
  EXPECT_EQ(dependent(problem, Linear{}), Names{});
  problem.z.conservativeResize(Eigen::NoChange, 4);
  problem.z.col(2).setLinSpaced(-3, 5);
  problem.z.col(3) = 7 * (problem.z.col(0) + problem.z.col(1)).array() + 1000;
  EXPECT_EQ(dependent(problem, Linear{}), (Names{"z1", "z2", "z4"}));
  // Without an intercept the constant has nowhere to go.
  EXPECT_EQ(dependent(problem, Linear{false}), Names{});
  problem.z.col(3).array() -= 1000;
  EXPECT_EQ(dependent(problem, Linear{false}), (Names{"z1", "z2", "z4"}));
}

TEST(Collinear, does_not_mind_units_large_means_and_close_relations) {
  Problem problem = told_apart(200, 0.1, 2);
  problem.z.conservativeResize(Eigen::NoChange, 4);
  problem.z.col(2) = 1e9 * problem.z.col(0).array().square();
  problem.z.col(3) = problem.z.col(0) + 1e-3 * problem.z.col(1).array().square().matrix();
  problem.z.col(0).array() += 1e5;
  EXPECT_EQ(dependent(problem, Linear{}), Names{});
}

TEST(Collinear, looks_at_x_at_several_responses_and_at_bases) {
  Problem problem = told_apart(60, 0.1, 3);
  problem.x = problem.y + 2 * problem.z.col(1);
  problem.y.conservativeResize(Eigen::NoChange, 2);
  problem.y.col(1) = -problem.y.col(0).array().square();
  EXPECT_EQ(dependent(problem, Linear{}), Names{});
  problem.x.conservativeResize(Eigen::NoChange, 2);
  problem.x.col(1) = -problem.x.col(0);
  EXPECT_EQ(dependent(problem, Linear{}).size(), 4U);  // two columns for each response
  problem.x.resize(0, 0);
  problem.y.conservativeResize(Eigen::NoChange, 1);
  problem.z.col(1) = problem.z.col(0);
  EXPECT_GE(dependent(problem, Spline(5)).size(), 2U);
  EXPECT_EQ(dependent(problem, Sine{}), Names{});  // not linear in its parameters
}

TEST(Verdict, collinear_columns_have_no_standard_errors_by_any_method) {
  Problem problem = told_apart(80, 0.1, 4);
  problem.z.col(1) = problem.z.col(0);
  for (const Estimator& method :
       {Estimator(Mixture{}), Estimator(Adjusted{}), Estimator(Entropic{}), Estimator(Ls{}), Estimator(Robot{})}) {
    const Result found = result_of(problem, method, true);
    EXPECT_EQ(found.identifiable.verdict, Verdict::not_identifiable);
    EXPECT_NE(found.identifiable.reason.find("z1 and z2"), std::string::npos) << found.identifiable.reason;
    EXPECT_EQ(found.covariance.size(), 0);
  }
}

TEST(Verdict, few_rows_are_never_enough_to_be_sure) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Problem problem = told_apart(3, 1, seed);
    problem.z = Matrix(problem.z.col(0));
    for (const bool in_order : {false, true})
      EXPECT_NE(result_of(problem, Auto{}, in_order).identifiable.verdict, Verdict::identified) << seed;
  }
}

Problem shortened(Problem problem, Index responses, Index features) {
  problem.y = Matrix(problem.y.topRows(responses));
  problem.z = Matrix(problem.z.topRows(features));
  return problem;
}

TEST(Verdict, features_without_a_response_are_left_out_by_the_likelihood) {
  Problem problem = told_apart(400, 0.1, 5);
  shuffle_features(problem, 5);
  const Fitted made = fitted(shortened(problem, 300, 400), Auto{}, false);
  EXPECT_EQ(name_of(made.context().chosen), "entropic");
  const Result& found = made.result();
  EXPECT_NEAR(found.parameters(1), 2, 0.05);
  EXPECT_NEAR(found.parameters(2), -1, 0.15);
  EXPECT_NEAR(found.noise_sd, 0.1, 0.04);
  // A bend that is half as large as the noise would move predictions by more than the noise.
  EXPECT_NE(found.identifiable.verdict, Verdict::identified);
  EXPECT_NE(found.identifiable.reason.find("if the response bends"), std::string::npos) << found.identifiable.reason;
}

TEST(Verdict, responses_without_features_are_left_out_by_the_likelihood) {
  Problem problem = told_apart(400, 0.1, 5);
  shuffle_features(problem, 5);
  const Fitted made = fitted(shortened(problem, 400, 370), Auto{}, false);
  EXPECT_EQ(name_of(made.context().chosen), "entropic");
  const Result& few = made.result();
  EXPECT_NEAR(few.parameters(1), 2, 0.05);
  EXPECT_NEAR(few.parameters(2), -1, 0.15);
  EXPECT_EQ(few.identifiable.reason.find("of 400 responses"), std::string::npos) << few.identifiable.reason;
  const Result many = result_of(shortened(problem, 400, 300), Auto{}, false);
  EXPECT_NE(many.identifiable.verdict, Verdict::identified);
  EXPECT_NE(many.identifiable.reason.find("100 of 400 responses"), std::string::npos) << many.identifiable.reason;
  EXPECT_EQ(many.covariance.size(), 0);
  EXPECT_NEAR(many.parameters(1), 2, 0.05);
  EXPECT_NEAR(many.parameters(2), -1, 0.2);
  EXPECT_NEAR(many.noise_sd, 0.1, 0.04);
  EXPECT_NEAR(many.plan.matched_share, 0.75, 1e-6);
}

TEST(Verdict, unseen_features_beside_x_leave_a_doubt) {
  Problem problem = told_apart(400, 0.1, 5);
  RandomStream random(5, 2);
  problem.x = Matrix::NullaryExpr(400, 1, [&] { return random.normal(); });
  problem.y += 0.5 * problem.x;
  shuffle_features(problem, 5);
  problem.z = Matrix(problem.z.topRows(360));
  const Result found = result_of(problem, Entropic{}, false);
  EXPECT_NEAR(found.parameters(1), 0.5, 0.05);
  EXPECT_NE(found.identifiable.verdict, Verdict::identified);
  EXPECT_EQ(found.covariance.size(), 0);
  EXPECT_NE(found.identifiable.reason.find("40 responses belong to features that are not in the table"),
            std::string::npos)
      << found.identifiable.reason;
}

TEST(Automatic, follows_a_hint_of_rows_in_tables_of_different_lengths) {
  Problem problem = told_apart(300, 0.1, 6);
  problem.z = Matrix(problem.z.topRows(250));
  const Fitted found = fitted(problem, Auto{}, true);
  EXPECT_EQ(name_of(found.context().chosen), "mixture");
  EXPECT_NEAR(found.parameters()(1), 2, 0.1);
}

TEST(Entropic, rows_without_weight_are_not_there) {
  Problem problem = told_apart(300, 0.1, 7);
  shuffle_features(problem, 7);
  const Result alone = result_of(problem, Entropic{}, false);
  Problem more = problem;
  more.z.conservativeResize(500, Eigen::NoChange);
  more.z.bottomRows(200).setConstant(17);
  more.z.bottomRows(200).col(1).setLinSpaced(0, 90);
  more.feature_weights = Vector::Zero(500);
  more.feature_weights.head(300).setOnes();
  const Result among_others = result_of(more, Entropic{}, false);
  EXPECT_TRUE(among_others.parameters.isApprox(alone.parameters, 1e-9));
  EXPECT_EQ(among_others.identifiable.reason, alone.identifiable.reason);
}

TEST(Entropic, rows_that_count_twice_are_not_simulated) {
  Problem problem = told_apart(300, 0.1, 8);
  shuffle_features(problem, 8);
  problem.feature_weights = Vector::Ones(300);
  problem.feature_weights.head(100).setConstant(2);
  const Result found = result_of(problem, Entropic{}, false);
  EXPECT_EQ(found.margins.size(), 0);  // those of a profile are calibrated by simulation
}

TEST(Mixture, without_noise_is_exact) {
  Problem problem;
  RandomStream random(9, 0);
  problem.z = Matrix::NullaryExpr(200, 2, [&] { return double(random.below(5)); });
  problem.y = 2 * problem.z.col(0) - problem.z.col(1);
  const Result found = result_of(problem, Mixture{}, true);
  EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
  EXPECT_NEAR(found.parameters(1), 2, 1e-9);
  ASSERT_EQ(found.covariance.rows(), 3);
  EXPECT_LT(found.std_errors().maxCoeff(), 1e-5);
}

TEST(Adjusted, fits_two_values_on_either_side) {
  Problem problem;
  RandomStream random(10, 0);
  problem.z = Matrix::NullaryExpr(400, 1, [&] { return double(random.below(2)); });
  problem.y = problem.z;
  for (Index i = 0; i < 100; ++i) problem.y(i, 0) = double(random.below(2));
  const Result found = result_of(problem, Adjusted{}, true);
  EXPECT_TRUE(std::isfinite(found.noise_sd));
  EXPECT_NEAR(found.parameters(1), 1, 0.3);
}

TEST(Adjusted, a_known_pair_does_not_make_an_order_of_chance) {
  Problem problem = told_apart(300, 0.5, 11);
  shuffle_features(problem, 11);
  ASSERT_EQ(result_of(problem, Adjusted{}, true).identifiable.verdict, Verdict::not_identifiable);
  problem.known = {{0, 0}};
  EXPECT_EQ(result_of(problem, Adjusted{}, true).identifiable.verdict, Verdict::not_identifiable);
}

TEST(MismatchRate, is_none_where_all_links_are_known) {
  const Problem problem = completed(told_apart(30, 0.1, 12));
  CandidateLinks links{.rows = {}, .known = 30};
  links.rows.y = problem.y;
  links.rows.z = problem.z;
  const auto bound = Linear{}.bound_to(problem);
  const LeastSquares linked = least_squares(*bound, links.rows, Vector::Zero(3));
  EXPECT_EQ(largest_mismatch_rate(*bound, links, linked.parameters, 0).rate, 0);
}

TEST(Verdict, rotations_are_named_for_models_linear_in_the_features_only) {
  RandomStream random(13, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(200, 2, [&] { return random.normal(); });
  problem.y = problem.z.col(0).array().sin() + 2 * problem.z.col(1).array().sin();
  problem.order = RowOrder::unrelated;
  const auto blames_rotations = [&](const Model& model) {
    const Fitted found = fit(problem, model, Entropic{.starts = {.starts = 2}});
    return found.result().identifiable.reason.find("jointly Gaussian") != std::string::npos;
  };
  EXPECT_TRUE(blames_rotations(Linear{}));
  EXPECT_FALSE(blames_rotations(Sine{}));
}

std::string said_of(const std::vector<Ending>& endings) {
  const Problem problem = completed(told_apart(100, 0.1, 1));
  const Identifiability said = said_by_starts(endings, problem, *Linear{}.bound_to(problem));
  EXPECT_EQ(said.verdict, Verdict::not_assessed);
  EXPECT_EQ(said.advice.empty(), said.reason.empty());
  return said.reason;
}

TEST(Starts, that_lead_to_solutions_as_good_as_each_other_or_never_to_the_same_are_told) {
  const Vector here = Eigen::Vector3d(1, 2, -1), near = Eigen::Vector3d(1, 2.001, -1),
               there = Eigen::Vector3d(3, -2, 1);
  EXPECT_EQ(said_of({{here, 1.0}}), "");
  EXPECT_EQ(said_of({{here, 1.0}, {near, 1.0 + 1e-9}}), "");
  EXPECT_EQ(said_of({{here, 1.0}, {near, 1.0 + 1e-9}, {there, 1.5}}), "");
  const std::string tied = said_of({{here, 1.0}, {near, 1.0 + 1e-9}, {there, 1 + 1e-8}});
  EXPECT_EQ(tied.substr(0, 71), "two solutions that predict differently are equally good to rounding (ob");
  const std::string alone = said_of({{here, 1.0}, {there, 1.5}, {2 * there, 2}});
  EXPECT_EQ(alone.substr(0, 88),
            "one of 3 starts led to this solution, the others elsewhere (next best objective 1.5, her");
}

}  // namespace
}  // namespace unshuffle
