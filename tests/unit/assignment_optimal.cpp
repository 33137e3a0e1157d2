// Optimal assignments against all permutations, against SciPy, and by their own duals.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "support/test_data.hpp"
#include "unshuffle/links/assignment.hpp"

namespace unshuffle {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Matrix random_matrix(Index rows, Index cols, std::mt19937_64& engine) {
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, cols, [&] { return normal(engine); });
}

/// Least cost over all ways to give every row of the shorter side a partner.
double brute_force(const Matrix& cost) {
  const Matrix wide = cost.rows() <= cost.cols() ? cost : Matrix(cost.transpose());
  std::vector<Index> order(static_cast<std::size_t>(wide.cols()));
  std::iota(order.begin(), order.end(), Index{0});
  double best = infinity;
  do {
    double total = 0;
    for (Index i = 0; i < wide.rows(); ++i) total += wide(i, order[std::size_t(i)]);
    best = std::min(best, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void expect_one_to_one(const std::vector<Index>& partner, Index columns, Index pairs) {
  std::set<Index> used;
  for (const Index j : partner) {
    if (j < 0) continue;
    EXPECT_LT(j, columns);
    EXPECT_TRUE(used.insert(j).second);
  }
  EXPECT_EQ(Index(used.size()), pairs);
}

void expect_duals_prove_it(const Matrix& cost, const Assignment& found) {
  double bound = found.row_dual.sum() + found.column_dual.sum();
  for (Index i = 0; i < cost.rows(); ++i) {
    for (Index j = 0; j < cost.cols(); ++j) {
      EXPECT_LE(found.row_dual(i) + found.column_dual(j), cost(i, j) + 1e-12);
    }
  }
  EXPECT_NEAR(bound, found.cost, 1e-10);
}

TEST(Assignment, equals_the_best_permutation_for_every_small_shape) {
  std::mt19937_64 engine(1);
  for (Index rows = 1; rows <= 7; ++rows) {
    for (Index cols = 1; cols <= 7; ++cols) {
      const Matrix cost = random_matrix(rows, cols, engine);
      const Assignment found = assign(cost);
      EXPECT_NEAR(found.cost, brute_force(cost), 1e-12) << rows << "x" << cols;
      expect_one_to_one(found.column_of_row, cols, std::min(rows, cols));
      expect_duals_prove_it(cost, found);
    }
  }
}

TEST(Assignment, agrees_with_scipy_on_stored_problems) {
  std::ifstream file(test_data("assignment.txt"));
  ASSERT_TRUE(file) << "tests/data/assignment.txt is missing";
  int cases = 0;
  file >> cases;
  ASSERT_GT(cases, 0);
  for (int c = 0; c < cases; ++c) {
    Index rows = 0;
    Index cols = 0;
    file >> rows >> cols;
    Matrix cost(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) file >> cost(i, j);
    }
    double expected = 0;
    ASSERT_TRUE(file >> expected);
    const Assignment found = assign(cost);
    EXPECT_NEAR(found.cost, expected, 1e-10);
    expect_duals_prove_it(cost, found);
  }
}

TEST(Assignment, breaks_ties_by_index) {
  const std::vector<Index> expected{0, 1, 2, 3};
  EXPECT_EQ(assign(Matrix::Ones(4, 6)).column_of_row, expected);
}

TEST(Assignment, leaves_a_row_alone_when_every_pair_of_it_is_forbidden) {
  Matrix cost = Matrix::Ones(3, 3);
  cost.row(1).setConstant(infinity);
  const Assignment found = assign(cost);
  EXPECT_EQ(found.column_of_row[1], -1);
  expect_one_to_one(found.column_of_row, 3, 2);
}

TEST(Assignment, makes_as_many_pairs_as_the_allowed_ones_permit) {
  Matrix cost = Matrix::Constant(3, 3, infinity);
  cost(0, 0) = 1;
  cost(0, 1) = 5;
  cost(1, 0) = 1;
  cost(2, 2) = 1;
  const std::vector<Index> expected{1, 0, 2};
  EXPECT_EQ(assign(cost).column_of_row, expected);
}

TEST(AssignmentOnLine, equals_the_dense_assignment_for_random_sizes) {
  std::mt19937_64 engine(5);
  for (int trial = 0; trial < 60; ++trial) {
    const Index n = std::uniform_int_distribution<Index>(1, 25)(engine);
    const Index m = std::uniform_int_distribution<Index>(1, 25)(engine);
    const Vector t = random_matrix(n, 1, engine);
    const Vector s = 1.5 * random_matrix(m, 1, engine);
    Matrix cost(n, m);
    for (Index i = 0; i < n; ++i) cost.row(i) = (s.array() - t(i)).square().transpose();
    const auto partner = assign_on_line(t, s);
    double total = 0;
    for (Index i = 0; i < n; ++i) {
      if (partner[std::size_t(i)] >= 0) total += cost(i, partner[std::size_t(i)]);
    }
    expect_one_to_one(partner, m, std::min(n, m));
    EXPECT_NEAR(total, assign(cost).cost, 1e-10);
  }
}

TEST(AssignmentOnLine, pieces_keep_every_short_row_matched_once_and_cost_little_more) {
  std::mt19937_64 engine(6);
  const Vector t = random_matrix(300, 1, engine);
  const Vector s = random_matrix(420, 1, engine);
  const auto cost = [&](const std::vector<Index>& partner) {
    double total = 0;
    for (Index i = 0; i < 300; ++i) total += std::pow(t(i) - s(partner[std::size_t(i)]), 2);
    return total;
  };
  const auto exact = assign_on_line(t, s);
  const auto cut = assign_on_line(t, s, 5000);
  expect_one_to_one(cut, 420, 300);
  EXPECT_LT(cost(exact), cost(cut));
  expect_one_to_one(assign_on_line(t, s, 1), 420, 300);
}

TEST(AssignmentOnLine, sorts_equal_sizes_and_breaks_ties_by_index) {
  const Vector tied = Vector::Zero(4);
  const std::vector<Index> expected{0, 1, 2, 3};
  EXPECT_EQ(assign_on_line(tied, tied), expected);
}

}  // namespace
}  // namespace unshuffle
