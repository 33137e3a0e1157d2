// Evidence against an answer besides its likelihood: groups left out, means of groups, orders near the one given,
// links to similar rows, other assumptions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>

#include "core/random.hpp"
#include "likelihood/calibration.hpp"
#include "likelihood/displacement.hpp"
#include "likelihood/group_checks.hpp"
#include "likelihood/order_doubts.hpp"
#include "likelihood/widened.hpp"
#include "support/fits.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "verdict/order.hpp"

namespace unshuffle {
namespace {

/// Rows of 1 + 2 z1 - z2 with noise of standard deviation 0.5, each group off by a number of its own.
Problem grouped(Index groups, Index rows_each, std::uint64_t seed, double off = 0) {
  RandomStream random(seed, 0);
  const Index rows = groups * rows_each;
  Problem problem;
  problem.z.resize(rows, 2);
  problem.y.resize(rows, 1);
  std::vector<double> offset;
  for (Index group = 0; group < groups; ++group) offset.push_back(off * random.normal());
  for (Index i = 0; i < rows; ++i) {
    const Index group = i / rows_each;
    problem.z.row(i) << -std::log(1 - random.uniform()), random.normal() + 0.3 * double(group % 5);
    problem.y(i, 0) = 1 + 2 * problem.z(i, 0) - problem.z(i, 1) + offset[std::size_t(group)] + 0.5 * random.normal();
    problem.response_groups.push_back(group);
  }
  problem.feature_groups = problem.response_groups;
  return completed(problem);
}

Calibrated answer_near(const Problem& problem, const Model& bound, const Vector& w, double epsilon) {
  LinkLikelihood likelihood(problem, bound, {});
  return calibrated(problem, bound, {}, likelihood.most_likely_near({w, epsilon}, 60), 0);
}

Vector truth() { return Vector{{1.0, 2.0, -1.0}}; }

TEST(GroupJackknife, agrees_with_the_model_where_that_holds) {
  double ratio = 0;
  constexpr int draws = 6;
  for (int seed = 0; seed < draws; ++seed) {
    const Problem problem = grouped(24, 10, std::uint64_t(seed));
    const auto bound = Linear{}.bound_to(problem);
    const Calibrated answer = answer_near(problem, *bound, truth(), 0.5);
    const GroupChecks checks = check_groups(problem, *bound, {}, answer);
    ASSERT_EQ(checks.jackknife.rows(), 3);
    ratio += std::log(checks.jackknife.trace() / answer.covariance.trace()) / draws;
  }
  EXPECT_NEAR(ratio, 0, 0.5);
}

TEST(GroupJackknife, sees_groups_that_are_off) {
  double ratio = 0;
  constexpr int draws = 6;
  for (int seed = 0; seed < draws; ++seed) {
    const Problem problem = grouped(24, 10, std::uint64_t(seed), 1);
    const auto bound = Linear{}.bound_to(problem);
    const Calibrated answer = answer_near(problem, *bound, truth(), 2);
    const GroupChecks checks = check_groups(problem, *bound, {}, answer);
    ratio += std::log(checks.jackknife.trace() / answer.covariance.trace()) / draws;
  }
  EXPECT_GT(ratio, 0.5);
}

TEST(GroupJackknife, is_not_to_be_had_from_two_groups_or_where_one_is_most_of_the_rows) {
  for (const std::vector<Index>& sizes : {std::vector<Index>{50, 50}, std::vector<Index>{10, 10, 80}}) {
    Problem problem = grouped(1, 100, 1);
    problem.response_groups.clear();
    for (std::size_t g = 0; g < sizes.size(); ++g)
      problem.response_groups.insert(problem.response_groups.end(), std::size_t(sizes[g]), Index(g));
    problem.feature_groups = problem.response_groups;
    const auto bound = Linear{}.bound_to(problem);
    const Calibrated answer = answer_near(problem, *bound, truth(), 0.5);
    EXPECT_EQ(check_groups(problem, *bound, {}, answer).jackknife.size(), 0);
  }
}

TEST(GroupMeans, contradict_coefficients_that_they_cannot_have_come_from) {
  const Problem problem = grouped(10, 30, 3);
  const auto bound = Linear{}.bound_to(problem);
  Calibrated answer = answer_near(problem, *bound, truth(), 0.5);
  EXPECT_GT(check_groups(problem, *bound, {}, answer).means_agree, 1e-3);
  answer.optimum.parameters(2) = 1;
  EXPECT_LT(check_groups(problem, *bound, {}, answer).means_agree, 1e-6);
}

TEST(Widened, needs_errors_that_are_numbers) {
  const Matrix covariance = Matrix{{4.0, 1.0}, {1.0, 9.0}};
  EXPECT_EQ(widened(covariance, Vector{{NAN, -INFINITY}}), covariance);
  EXPECT_DOUBLE_EQ(widened(covariance, Vector{{INFINITY, 0.0}})(0, 0), 40000);
}

TEST(Calibrated, widening_never_narrows_and_keeps_correlations) {
  Calibrated answer;
  answer.covariance = Matrix{{4.0, 1.0}, {1.0, 9.0}};
  answer.widen(Vector{{4.0, 1.0}});
  EXPECT_DOUBLE_EQ(answer.covariance(0, 0), 16);
  EXPECT_DOUBLE_EQ(answer.covariance(1, 1), 9);
  EXPECT_DOUBLE_EQ(answer.covariance(0, 1), 2);
}

CandidateLinks in_order(const Problem& problem) {
  CandidateLinks links;
  links.rows.z = problem.z;
  links.rows.y = problem.y;
  return links;
}

/// Features that change slowly from row to row, as in time; responses `places` rows off.
Problem displaced(Index rows, Index places, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Matrix z(rows + std::abs(places), 2);
  z.row(0).setZero();
  for (Index i = 1; i < z.rows(); ++i)
    z.row(i) << 0.8 * z(i - 1, 0) + random.normal(), 0.8 * z(i - 1, 1) + random.normal();
  const Index features_from = std::max<Index>(0, -places), responses_from = std::max<Index>(0, places);
  Problem problem;
  problem.z = z.middleRows(features_from, rows);
  problem.y = z.middleRows(responses_from, rows) * Vector{{2.0, -1.0}};
  for (Index i = 0; i < rows; ++i) problem.y(i, 0) += 1 + 0.5 * random.normal();
  return completed(problem);
}

TEST(Displacement, is_found_with_its_sign) {
  for (const Index places : {3, -2, 17}) {
    const Problem problem = displaced(400, places, 5);
    const Displacement found = displacement_of(*Linear{}.bound_to(problem), in_order(problem));
    EXPECT_EQ(found.places, places);
    EXPECT_GT(found.nats, 13);
  }
}

TEST(Displacement, is_not_seen_in_rows_that_are_in_order_or_in_none) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Problem problem = displaced(400, 0, seed);
    EXPECT_LT(displacement_of(*Linear{}.bound_to(problem), in_order(problem)).nats, 1);
    RandomStream random(seed, 9);
    problem.y = Matrix::NullaryExpr(400, 1, [&] { return random.normal(); });
    EXPECT_LT(displacement_of(*Linear{}.bound_to(problem), in_order(problem)).nats, 13);
  }
}

TEST(Displacement, is_the_verdict_of_a_fit) {
  const Result result = fit(ordered(displaced(400, 3, 2), RowOrder::probably_linked), Linear{}, Mixture{}).result();
  EXPECT_EQ(result.identifiable.verdict, Verdict::not_identifiable);
  EXPECT_NE(result.identifiable.reason.find("displaced by 3: response 1 beside row 4"), std::string::npos)
      << result.identifiable.reason;
}

/// Rows whose wrong partners are `reach` ranks of the first feature away, or anywhere (0).
CandidateLinks with_wrong_partners(Index rows, double share, Index reach, std::uint64_t seed, Vector& right) {
  RandomStream random(seed, 0);
  CandidateLinks links;
  links.rows.z = Matrix::NullaryExpr(rows, 2, [&] { return random.normal(); });
  std::vector<Index> ranked(static_cast<std::size_t>(rows));
  std::iota(ranked.begin(), ranked.end(), Index{0});
  std::sort(ranked.begin(), ranked.end(), [&](Index a, Index b) { return links.rows.z(a, 0) < links.rows.z(b, 0); });
  links.rows.y.resize(rows, 1);
  right = Vector::Ones(rows);
  for (Index k = 0; k < rows; ++k) {
    const bool wrong = random.uniform() < share;
    Index partner = k;
    if (wrong)
      partner =
          reach > 0 ? std::clamp<Index>(k + random.below(2 * reach + 1) - reach, 0, rows - 1) : random.below(rows);
    const Index i = ranked[std::size_t(k)], j = ranked[std::size_t(partner)];
    links.rows.y(i, 0) = 3 * links.rows.z(j, 0) + links.rows.z(j, 1) + 0.3 * random.normal();
    if (wrong) right(i) = 0;
  }
  return links;
}

const OrderDoubt& of_kind(OrderDoubt::Kind kind, const std::vector<OrderDoubt>& doubts) {
  return *std::find_if(doubts.begin(), doubts.end(), [&](const OrderDoubt& doubt) { return doubt.kind == kind; });
}

double nats_that(std::string_view assumption, const std::vector<OrderDoubt>& doubts) {
  return std::find_if(doubts.begin(), doubts.end(),
                      [&](const OrderDoubt& doubt) { return doubt.assumption == assumption; })
      ->nats;
}

std::vector<OrderDoubt> doubts_of(const CandidateLinks& links, const OrderAssumed& answer) {
  const Linear model{false};
  const auto bound = model.bound_to(completed({.y = links.rows.y, .z = links.rows.z}));
  return doubts_of_order(*bound, links, answer);
}

TEST(OrderDoubts, similar_partners_stand_out_where_wrong_links_go_to_rows_nearby) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (const Index reach : {0, 25}) {
      Vector right;
      const CandidateLinks links = with_wrong_partners(500, 0.4, reach, seed, right);
      for (const bool normal : {true, false}) {
        const OrderDoubt found =
            of_kind(OrderDoubt::Kind::similar_partners, doubts_of(links, {Vector{{3.0, 1.0}}, right, normal}));
        if (reach > 0) {
          EXPECT_GT(found.nats, normal ? 3 : 0) << seed;  // noise of any shape may account for many of them
          EXPECT_GT(found.shift(1), 0) << seed;           // taken for right, wrong links hide the effect of z2
        } else {
          EXPECT_LT(found.nats, 1.5) << seed;
        }
      }
    }
  }
}

/// Rows of 2 z1 - z2 + curve·(z1² - 1) + noise, three tenths of them moved.
CandidateLinks partly_moved(Index rows, double curve, std::uint64_t seed,
                            const std::function<double(RandomStream&)>& noise) {
  RandomStream random(seed, 0);
  CandidateLinks links;
  links.rows.z = Matrix::NullaryExpr(rows, 2, [&] { return random.normal(); });
  links.rows.y.resize(rows, 1);
  for (Index i = 0; i < rows; ++i) {
    const double z = links.rows.z(i, 0);
    links.rows.y(i, 0) = 2 * z - links.rows.z(i, 1) + curve * (z * z - 1) + noise(random);
  }
  for (Index i = 0; i < 3 * rows / 10; ++i) std::swap(links.rows.y(i, 0), links.rows.y(random.below(3 * rows / 10), 0));
  return links;
}

double normal_noise(RandomStream& random) { return 0.5 * random.normal(); }

OrderAssumed as_drawn(Index rows) {
  Vector right = Vector::Ones(rows);
  right.head(3 * rows / 10).setConstant(0.1);
  return {Vector{{2.0, -1.0}}, right};
}

TEST(OrderDoubts, a_curve_is_seen_where_there_is_one) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto nats = [&](double curve) {
      const CandidateLinks links = partly_moved(500, curve, seed, normal_noise);
      return of_kind(OrderDoubt::Kind::curve, doubts_of(links, as_drawn(500))).nats;
    };
    EXPECT_LT(nats(0), 2);
    EXPECT_GT(nats(0.4), 10);
  }
}

TEST(OrderDoubts, noise_of_another_shape_is_seen) {
  const auto skewed = [](RandomStream& random) { return 0.5 * (-std::log(random.uniform()) - 1); };
  const auto heavy = [](RandomStream& random) {
    return 0.5 * random.normal() / std::sqrt(-std::log(random.uniform()));
  };
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (const OrderDoubt& doubt : doubts_of(partly_moved(800, 0, seed, normal_noise), as_drawn(800)))
      EXPECT_LT(doubt.nats, 2) << doubt.assumption;
    EXPECT_GT(
        nats_that("the noise is skewed to the right", doubts_of(partly_moved(800, 0, seed, skewed), as_drawn(800))),
        10);
    EXPECT_GT(nats_that("the noise has heavy tails", doubts_of(partly_moved(800, 0, seed, heavy), as_drawn(800))), 3);
  }
}

TEST(OrderDoubts, regression_contradicts_coefficients_of_another_direction) {
  const CandidateLinks links = partly_moved(500, 0, 1, normal_noise);
  OrderAssumed answer = as_drawn(500);
  EXPECT_LT(of_kind(OrderDoubt::Kind::regression, doubts_of(links, answer)).nats, 0);
  answer.parameters(1) = -2;
  const OrderDoubt found = of_kind(OrderDoubt::Kind::regression, doubts_of(links, answer));
  EXPECT_GT(found.nats, 10);
  EXPECT_GT(found.shift(1), 0);
}

TEST(OrderDoubts, are_none_where_groups_or_several_responses_leave_them_unknown) {
  CandidateLinks links = partly_moved(100, 0, 1, normal_noise);
  links.blocks.assign(100, 0);
  EXPECT_TRUE(doubts_of(links, as_drawn(100)).empty());
}

TEST(OrderDoubts, are_averaged_by_their_odds) {
  const Matrix covariance = 0.25 * Matrix::Identity(1, 1);
  const auto over = [&](std::vector<double> nats) {
    std::vector<OrderDoubt> doubts;
    for (const double n : nats) doubts.push_back({OrderDoubt::Kind::curve, "", Vector::Constant(1, 2), n});
    return averaged_over(doubts, covariance);
  };
  EXPECT_EQ(over({}).covariance, covariance);
  EXPECT_DOUBLE_EQ(over({0}).shift(0), 1);  // even odds
  EXPECT_DOUBLE_EQ(over({0}).covariance(0, 0), 0.25 + 1);
  EXPECT_NEAR(over({-30}).shift(0), 0, 1e-9);
  EXPECT_NEAR(over({900}).shift(0), 2, 1e-9);
  EXPECT_NEAR(over({900}).covariance(0, 0), 0.25, 1e-9);
  EXPECT_DOUBLE_EQ(over({0, 0}).shift(0), 4.0 / 3);
}

TEST(OrderVerdict, wrong_links_that_depend_on_features_need_less_evidence_where_normal_noise_shows_them_too) {
  OrderEvidence evidence;
  evidence.rows = 500;
  evidence.linked = 400;
  evidence.parameters = 5;
  evidence.error = 0.1;
  const auto verdict = [&](double independence, double normal) {
    evidence.independence = independence;
    evidence.normal_independence = normal;
    EXPECT_EQ(contradicted(evidence), judge(evidence).verdict != Verdict::identified);
    return judge(evidence).verdict;
  };
  EXPECT_EQ(verdict(5e-3, 1), Verdict::identified);
  EXPECT_EQ(verdict(5e-3, 1e-5), Verdict::weakly_identified);
  EXPECT_EQ(verdict(0.5, 1e-5), Verdict::identified);
  EXPECT_EQ(verdict(5e-4, 1), Verdict::weakly_identified);
}

TEST(WhatIf, is_tried_unless_quick_and_a_quick_fit_says_so) {
  Problem problem = grouped(8, 25, 4);
  const Result whole = fit(ordered(problem, RowOrder::unrelated), Linear{}, Entropic{}).result();
  ASSERT_EQ(whole.identifiable.what_if.size(), 7U);
  for (const WhatIf& other : whole.identifiable.what_if) EXPECT_EQ(other.shift.size(), 3);
  const Result quick =
      fit(ordered(problem, RowOrder::unrelated), Linear{}, Entropic{.sensitivity = {.quick = true}}).result();
  EXPECT_TRUE(quick.identifiable.what_if.empty());
  EXPECT_NE(quick.identifiable.reason.find("other assumptions were not tried"), std::string::npos);
  EXPECT_EQ(quick.parameters, whole.parameters);
}

TEST(WhatIf, of_rows_in_order_has_the_regression_that_trusts_every_link) {
  Problem problem = grouped(1, 200, 6);
  problem.response_groups.clear();
  problem.feature_groups.clear();
  const Result result = fit(ordered(problem, RowOrder::probably_linked), Linear{}, Mixture{}).result();
  const auto& tried = result.identifiable.what_if;
  const auto found =
      std::find_if(tried.begin(), tried.end(), [](const WhatIf& o) { return o.assumption == "no link is wrong"; });
  ASSERT_NE(found, tried.end());
  EXPECT_FALSE(found->ruled_out);
  EXPECT_LT(found->shift.norm(), 0.1);
}

}  // namespace
}  // namespace unshuffle
