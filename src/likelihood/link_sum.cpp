#include "likelihood/link_sum.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "core/special.hpp"
#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

// f(S) is the sum over all ways to link the first |S| rows to the columns in S, g(S) that over all ways to link the
// remaining rows to columns outside S:
//   f(S) = Σ_{j ∈ S} f(S \ j) K_{|S|, j},     g(S) = Σ_{j ∉ S} K_{|S|+1, j} g(S ∪ j),
// so that the permanent is f(all) = g(∅), and row i is linked to column j with probability
//   Σ_{|S| = i-1, j ∉ S} f(S) K_ij g(S ∪ j) / g(∅).
// Ryser's and Glynn's formulas cost the same 2ⁿn, but their terms alternate; here all are positive, so nothing cancels.
// docs/mathematics.md §18.4.
namespace {

/// Divides every row by its largest entry; returns the logarithm of what was taken out.
double take_out_largest(Matrix& logs) {
  const Vector rows = logs.rowwise().maxCoeff();
  logs.colwise() -= rows;
  return rows.sum();
}

/// Divides rows and columns by their sums in turn.
double balance(Matrix& logs) {
  constexpr int rounds = 50;
  double taken = 0;
  for (int round = 0; round < rounds; ++round) {
    taken += take_out_largest(logs);
    const Vector rows = logs.array().exp().rowwise().sum().log();
    logs.colwise() -= rows;
    const Eigen::RowVectorXd largest = logs.colwise().maxCoeff();
    logs.rowwise() -= largest;
    const Eigen::RowVectorXd columns = logs.array().exp().colwise().sum().log();
    logs.rowwise() -= columns;
    taken += rows.sum() + largest.sum() + columns.sum();
  }
  return taken;
}

/// Where one way to link the rows outweighs all others beyond the range of numbers.
LinkSum best_links_alone(const Matrix& logs) {
  const std::vector<Index> partner = assign(-logs).column_of_row;
  LinkSum made{0, Matrix::Zero(logs.rows(), logs.cols())};
  for (Index i = 0; i < logs.rows(); ++i) {
    made.log_mean += logs(i, partner[std::size_t(i)]);
    made.probability(i, partner[std::size_t(i)]) = 1;
  }
  return made;
}

struct Subsets {
  const Matrix& kernel;  ///< Transposed: a column per row of the group.
  Index rows, columns;
  std::vector<double> before, after;

  explicit Subsets(const Matrix& k) : kernel(k), rows(k.cols()), columns(k.rows()) {
    const std::size_t all = std::size_t{1} << unsigned(columns);
    before.assign(all, 0);
    after.assign(all, 0);
    before[0] = 1;
    for (std::size_t set = 1; set < all; ++set) {
      const int taken = std::popcount(set);
      if (taken > rows) continue;
      const double* row = kernel.data() + (taken - 1) * columns;
      double sum = 0;
      for (std::size_t left = set; left != 0; left &= left - 1) {
        const int j = std::countr_zero(left);
        sum += before[set ^ (std::size_t{1} << unsigned(j))] * row[j];
      }
      before[set] = sum;
    }
    for (std::size_t set = all; set-- > 0;) {
      const int taken = std::popcount(set);
      if (taken > rows) continue;
      if (taken == rows) {
        after[set] = 1;
        continue;
      }
      const double* row = kernel.data() + taken * columns;
      double sum = 0;
      for (std::size_t left = (all - 1) & ~set; left != 0; left &= left - 1) {
        const int j = std::countr_zero(left);
        sum += after[set | (std::size_t{1} << unsigned(j))] * row[j];
      }
      after[set] = sum;
    }
  }

  [[nodiscard]] double total() const { return after[0]; }

  [[nodiscard]] Matrix probability() const {
    Matrix made = Matrix::Zero(rows, columns);
    const std::size_t all = after.size();
    for (std::size_t set = 0; set + 1 < all; ++set) {
      const int taken = std::popcount(set);
      if (taken >= rows) continue;
      for (std::size_t left = (all - 1) & ~set; left != 0; left &= left - 1) {
        const int j = std::countr_zero(left);
        made(taken, j) += before[set] * after[set | (std::size_t{1} << unsigned(j))];
      }
    }
    return made.cwiseProduct(kernel.transpose()) / total();
  }
};

}  // namespace

LinkSum sum_over_links(const Matrix& log_kernel) {
  constexpr double nearly_underflows = 1e-200;
  const double n = double(log_kernel.rows()), m = double(log_kernel.cols());
  const double log_ways = log_gamma(m + 1) - log_gamma(m - n + 1);
  // Parameters far out may overflow a density; a search turns back from there.
  if (!log_kernel.allFinite()) return {-HUGE_VAL, Matrix::Zero(log_kernel.rows(), log_kernel.cols())};
  Matrix logs = log_kernel;
  double taken = take_out_largest(logs);
  // Rows that compete for the same columns may leave nothing but tiny products, which other scales bring back. Surplus
  // columns may stay without a row, so their scale counts.
  for (const bool balanced : {false, true}) {
    if (balanced && n == m) taken += balance(logs);
    const Matrix kernel = logs.array().exp().matrix().transpose();
    const Subsets sums(kernel);
    if (sums.total() > nearly_underflows) return {taken + std::log(sums.total()) - log_ways, sums.probability()};
  }
  LinkSum made = best_links_alone(logs);
  made.log_mean += taken - log_ways;
  return made;
}

CountSum sum_over_counts(const VectorRef& p, Index ones) {
  const Index n = p.size();
  // before(k, j): the first j features have k ones; after(k, j): those from j on have k.
  Matrix before = Matrix::Zero(ones + 1, n + 1), after = Matrix::Zero(ones + 1, n + 1);
  before(0, 0) = after(0, n) = 1;
  for (Index j = 0; j < n; ++j) {
    before.col(j + 1) = (1 - p(j)) * before.col(j);
    before.col(j + 1).tail(ones) += p(j) * before.col(j).head(ones);
  }
  for (Index j = n; j-- > 0;) {
    after.col(j) = (1 - p(j)) * after.col(j + 1);
    after.col(j).tail(ones) += p(j) * after.col(j + 1).head(ones);
  }
  const double total = before(ones, n);
  CountSum made;
  made.log_mean =
      std::log(total) - (log_gamma(double(n) + 1) - log_gamma(double(ones) + 1) - log_gamma(double(n - ones) + 1));
  made.expected = Vector::Zero(n);
  for (Index j = 0; j < n && ones > 0; ++j)
    made.expected(j) = p(j) * before.col(j).head(ones).dot(after.col(j + 1).head(ones).reverse()) / total;
  return made;
}

}  // namespace unshuffle
