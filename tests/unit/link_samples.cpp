// Links drawn from their posterior, and estimates pooled over them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fitted/sample_links.hpp"
#include "likelihood/link_draws.hpp"
#include "links/permanent.hpp"
#include "support/complaint.hpp"
#include "unshuffle/links/pool.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {
namespace {

Matrix random_logs(Index rows, Index columns, std::uint64_t seed) {
  RandomStream random(seed, 0);
  return Matrix::NullaryExpr(rows, columns, [&] { return 1.2 * random.normal(); });
}

/// How often each pair is linked, from the exact sum over all links.
Matrix pair_probabilities(const Matrix& logs) {
  if (logs.rows() <= logs.cols()) return sum_over_links(logs).probability;
  return sum_over_links(logs.transpose()).probability.transpose();
}

/// Frequencies differ from probabilities by no more than their sampling error; `correlated` widens it.
void expect_frequencies(const Matrix& counts, double draws, const Matrix& expected, double correlated = 1) {
  for (Index j = 0; j < expected.cols(); ++j) {
    for (Index i = 0; i < expected.rows(); ++i) {
      const double p = expected(i, j), error = std::sqrt(correlated * p * (1 - p) / draws);
      EXPECT_NEAR(counts(i, j) / draws, p, 5 * error + 1e-9) << i << " " << j;
    }
  }
}

void add_links(const std::vector<Index>& column, Matrix& counts) {
  for (std::size_t i = 0; i < column.size(); ++i)
    if (column[i] >= 0) ++counts(Index(i), column[i]);
}

TEST(LinkDraws, of_small_blocks_have_the_exact_frequencies) {
  constexpr int draws = 20'000;
  for (const auto& [n, m] : {std::pair<Index, Index>{1, 1}, {4, 4}, {3, 5}, {5, 3}, {1, 4}}) {
    const Matrix logs = random_logs(n, m, 3);
    RandomStream random(5, 0);
    Matrix counts = Matrix::Zero(n, m);
    for (int k = 0; k < draws; ++k) add_links(draw_exactly(logs, random), counts);
    EXPECT_EQ(counts.sum(), double(draws * std::min(n, m)));
    expect_frequencies(counts, draws, pair_probabilities(logs));
  }
}

TEST(LinkDraws, of_the_chain_have_the_exact_frequencies) {
  constexpr int draws = 20'000;
  for (const auto& [n, m] : {std::pair<Index, Index>{2, 2}, {6, 6}, {3, 6}, {6, 4}}) {
    const Matrix logs = random_logs(n, m, 4);
    RandomStream random(6, 0);
    std::vector<Index> start(std::size_t(n), -1);
    std::iota(start.begin(), start.begin() + std::min(n, m), Index{0});
    LinkChain chain(start, m);
    Matrix counts = Matrix::Zero(n, m);
    for (int k = 0; k < draws; ++k) {
      chain.run([&](Index i, Index j) { return logs(i, j); }, 8, random);
      add_links(chain.column_of_row(), counts);
    }
    expect_frequencies(counts, draws, pair_probabilities(logs), 4);
  }
}

/// Counts of groups of five, of whom four have a partner; links lost within groups.
Problem grouped_counts() {
  constexpr Index groups = 40, size = 5;
  RandomStream random(7, 0);
  Problem made;
  made.z = Matrix::NullaryExpr(groups * size, 1, [&] { return random.normal(); });
  made.y.resize(groups * (size - 1), 1);
  for (Index row = 0; row < made.y.rows(); ++row) {
    const Index group = row / (size - 1);
    made.response_groups.push_back(group);
    const double eta = 0.5 + made.z(group * size + row % (size - 1), 0);
    made.y(row, 0) = family_of(FamilyKind::poisson).draw(eta, 1, Shape::Zero(), [&] { return random.uniform(); });
  }
  for (Index row = 0; row < made.z.rows(); ++row) made.feature_groups.push_back(row / size);
  return made;
}

/// The fit as if its coefficients were certain.
Fitted certain(const Fitted& fitted, const Problem& problem) {
  Result result = fitted.result();
  result.covariance.resize(0, 0);
  const auto given = std::make_shared<const Problem>(completed(problem));
  return {std::move(result), fitted.context(), std::shared_ptr<const Model>(Linear().bound_to(*given)), given};
}

TEST(LinkSamples, of_groups_are_the_posterior_at_the_coefficients) {
  const Problem problem = grouped_counts();
  const Fitted fitted = certain(fit(problem, Linear{}, Entropic{.family = {FamilyKind::poisson}}), problem);
  constexpr Index draws = 4000;
  const std::vector<LinkSet> sets = fitted.sample_links(draws, 1);
  ASSERT_EQ(Index(sets.size()), draws);
  Matrix counts = Matrix::Zero(4, 5);
  for (const LinkSet& links : sets) {
    ASSERT_EQ(Index(links.size()), problem.responses());
    for (const KnownPair& pair : links)
      if (pair.response_row < 4) ++counts(pair.response_row, pair.feature_row);
  }
  Matrix logs(4, 5);
  const Vector& w = fitted.parameters();
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 5; ++j)
      logs(i, j) = family_of(FamilyKind::poisson)
                       .log_density({problem.y(i, 0), w(0) + w(1) * problem.z(j, 0)}, Shape::Zero())
                       .value;
  expect_frequencies(counts, draws, pair_probabilities(logs));
}

TEST(LinkSamples, keep_rows_in_order_as_often_as_their_links_are_right) {
  constexpr Index n = 120, draws = 1500;
  RandomStream random(8, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(n, 1, [&] { return random.normal(); });
  problem.y = (2 * problem.z).array() + 1;
  for (double& value : problem.y.reshaped()) value += 0.3 * random.normal();
  for (Index i = 0; i < 30; ++i) std::swap(problem.y(i, 0), problem.y((7 * i) % 30, 0));
  problem.order = RowOrder::probably_linked;
  problem.facts.wrong_rate = Vector::Constant(n, 0.25);
  const Fitted fitted = certain(fit(problem, Linear{}, Mixture{}), problem);
  Vector kept = Vector::Zero(n);
  for (const LinkSet& links : fitted.sample_links(draws, 2)) {
    ASSERT_EQ(Index(links.size()), n);
    std::vector<char> taken(std::size_t(n), 0);
    for (const KnownPair& pair : links) {
      ++taken[std::size_t(pair.feature_row)];
      if (pair.response_row == pair.feature_row) kept(pair.response_row) += 1.0 / draws;
    }
    EXPECT_EQ(*std::max_element(taken.begin(), taken.end()), 1);
  }
  // A link may also be drawn as wrong and found again among the others.
  const Vector& right = fitted.link_probabilities();
  EXPECT_GT((kept - right).minCoeff(), -0.08);
  EXPECT_LT((kept - right).maxCoeff(), 0.45);
  EXPECT_NEAR((kept - right).mean(), 0, 0.08);
}

TEST(LinkSamples, are_reproducible_and_differ) {
  const Problem problem = grouped_counts();
  const Fitted fitted = fit(problem, Linear{}, Entropic{.family = {FamilyKind::poisson}});
  const auto features = [](const LinkSet& links) {
    std::vector<Index> rows;
    for (const KnownPair& pair : links) rows.push_back(pair.feature_row);
    return rows;
  };
  const auto first = fitted.sample_links(2, 3), again = fitted.sample_links(2, 3);
  EXPECT_EQ(features(first[1]), features(again[1]));
  EXPECT_NE(features(first[0]), features(first[1]));
}

TEST(LinkSamples, need_a_likelihood) {
  const Problem problem = grouped_counts();
  const Fitted fitted = fit(problem, Linear{}, Robot{});
  EXPECT_NE(complaint([&] { (void)fitted.sample_links(2); }).find("no law of the noise"), std::string::npos);
}

// By hand: estimates 1, 2 and 3 with variances 0.5: Ū = 0.5, B = 1, T = 0.5 + 4/3, λ = 8/11, ν_M = 2/λ² = 121/32; with
// ν₀ = 20, ν_obs = 21/23·20·3/11 = 1260/253.
TEST(Pool, equals_barnard_and_rubin_by_hand) {
  const Matrix estimates = Eigen::Vector3d(1, 2, 3);
  const std::vector<Matrix> variances(3, Matrix::Constant(1, 1, 0.5));
  const Pooled pooled = pool(estimates, variances, 20);
  EXPECT_DOUBLE_EQ(pooled.estimates(0), 2);
  EXPECT_DOUBLE_EQ(pooled.covariance(0, 0), 11.0 / 6);
  const double freedom = 1 / (32.0 / 121 + 253.0 / 1260);
  EXPECT_NEAR(pooled.freedom(0), freedom, 1e-12);
  EXPECT_NEAR(pooled.information_lost(0), (8.0 / 3 + 2 / (freedom + 3)) / (8.0 / 3 + 1), 1e-12);
  EXPECT_NEAR(pool(estimates, variances).freedom(0), 121.0 / 32, 1e-12);
  // Of one estimate in all sets nothing is lost.
  const Pooled same = pool(Matrix::Ones(4, 1), std::vector<Matrix>(4, Matrix::Ones(1, 1)));
  EXPECT_TRUE(std::isinf(same.freedom(0)));
  EXPECT_NEAR(same.intervals()(0, 1), 1 + 1.959963984540054, 1e-12);
  EXPECT_EQ(same.information_lost(0), 0);
}

TEST(Pool, refuses_what_cannot_be_pooled) {
  const std::vector<Matrix> one(1, Matrix::Ones(1, 1)), two(2, Matrix::Ones(1, 1));
  EXPECT_NE(complaint([&] { (void)pool(Matrix::Ones(1, 1), one); }).find("at least 2"), std::string::npos);
  EXPECT_NE(complaint([&] { (void)pool(Matrix::Ones(2, 1), one); }).find("one each"), std::string::npos);
  EXPECT_NE(complaint([&] { (void)pool(Matrix::Ones(2, 2), two); }).find("1 × 1 for 2"), std::string::npos);
}

}  // namespace
}  // namespace unshuffle
