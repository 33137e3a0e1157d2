// Evidence against an answer besides its likelihood: groups left out, means of groups, orders near the one given,
// links to similar rows, other assumptions.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "likelihood/calibration.hpp"
#include "likelihood/group_checks.hpp"
#include "likelihood/misplaced_links.hpp"
#include "support/fits.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"

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
  return calibrated(problem, bound, {}, likelihood.most_likely_near(w, epsilon, 60), 0);
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

TEST(SimilarPartners, stand_out_where_wrong_links_go_to_rows_nearby) {
  const Linear model{false};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (const Index reach : {0, 25}) {
      Vector right;
      const CandidateLinks links = with_wrong_partners(500, 0.4, reach, seed, right);
      const auto bound = model.bound_to(completed({.y = links.rows.y, .z = links.rows.z}));
      const double gain = gain_of_similar_partners(*bound, links, Vector{{3.0, 1.0}}, right);
      if (reach > 0) {
        EXPECT_GT(gain, 3) << seed;
      } else {
        EXPECT_LT(gain, 1) << seed;
      }
    }
  }
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
