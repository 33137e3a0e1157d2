#include "links/permanent.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
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
// For functions h_ij of pairs, with H(π) = Σ_i h_iπ(i), let F(S) be the sum of f(S) with every term times its H so far,
//   F(S) = Σ_{j ∈ S} K_{|S|, j} (F(S \ j) + f(S \ j) h_{|S|, j}).
// Pairs of earlier and later rows are met at the later one, so that, with k = |S|+1,
//   E[H Hᵀ] = Σ_ij P_ij h_ij h_ijᵀ + M + Mᵀ,     M = Σ_S F(S) (Σ_{j ∉ S} K_kj g(S ∪ j) h_kj)ᵀ / g(∅).
// docs/mathematics.md §5.6.
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
  LinkSum made{0, Matrix::Zero(logs.rows(), logs.cols()), {}};
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

  /// Of sums of `scores`, where their probabilities are known.
  [[nodiscard]] Matrix covariance(PairScores scores, const Matrix& probability) const {
    const Index p = scores.rows(), all = Index(after.size());
    // Row by row about their means: then the sums have mean zero.
    for (Index i = 0; i < rows; ++i) {
      Vector mean = Vector::Zero(p);
      for (Index j = 0; j < columns; ++j) mean += probability(i, j) * scores.col(i + rows * j);
      for (Index j = 0; j < columns; ++j) scores.col(i + rows * j) -= mean;
    }
    const Matrix weighted = scores * probability.reshaped().asDiagonal();
    Matrix made = weighted * scores.transpose(), so_far = Matrix::Zero(p, all), products = Matrix::Zero(p, p);
    Vector ahead(p);
    for (Index set = 0; set < all; ++set) {
      const int taken = std::popcount(std::size_t(set));
      if (taken > rows) continue;
      for (Index left = set; left != 0; left &= left - 1) {
        const Index bit = left & -left, j = std::countr_zero(std::size_t(left)), i = taken - 1;
        const double k = kernel(j, i);
        so_far.col(set) += k * so_far.col(set ^ bit) + k * before[std::size_t(set ^ bit)] * scores.col(i + rows * j);
      }
      if (taken == 0 || taken == rows) continue;
      ahead.setZero();
      for (Index left = (all - 1) & ~set; left != 0; left &= left - 1) {
        const Index bit = left & -left, j = std::countr_zero(std::size_t(left));
        ahead += kernel(j, taken) * after[std::size_t(set | bit)] * scores.col(taken + rows * j);
      }
      products.noalias() += so_far.col(set) * ahead.transpose();
    }
    made += (products + products.transpose()) / total();
    return made;
  }
};

}  // namespace

LinkSum sum_over_links(const Matrix& log_kernel, const PairScores* scores) {
  constexpr double nearly_underflows = 1e-200;
  const double n = double(log_kernel.rows()), m = double(log_kernel.cols());
  const double log_ways = log_gamma(m + 1) - log_gamma(m - n + 1);
  // Parameters far out may overflow a density; a search turns back from there.
  const Matrix nothing = scores != nullptr ? Matrix::Zero(scores->rows(), scores->rows()) : Matrix();
  if (!log_kernel.allFinite()) return {-HUGE_VAL, Matrix::Zero(log_kernel.rows(), log_kernel.cols()), nothing};
  Matrix logs = log_kernel;
  double taken = take_out_largest(logs);
  // Rows that compete for the same columns may leave nothing but tiny products, which other scales bring back. Surplus
  // columns may stay without a row, so their scale counts.
  for (const bool balanced : {false, true}) {
    if (balanced && n == m) taken += balance(logs);
    const Matrix kernel = logs.array().exp().matrix().transpose();
    const Subsets sums(kernel);
    if (!(sums.total() > nearly_underflows)) continue;
    LinkSum made{taken + std::log(sums.total()) - log_ways, sums.probability(), {}};
    if (scores != nullptr) made.covariance = sums.covariance(*scores, made.probability);
    return made;
  }
  LinkSum made = best_links_alone(logs);
  made.covariance = nothing;
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

// Two approximations of D, each good where the other is not. Where every row has many partners, fluctuations around
// the plan are Gaussian and D₁ = -½ Σ log(1-λ²) over the singular values λ < 1 of B, which grows without bound as links
// become certain. Where they are certain but for a few, rows fall into small blocks; k rows with k equal partners have
//   log perm = -k c(k),     c(k) = log k - log Γ(k+1)/k,
// and D₂ = log(Nᴺ/N!) - ½ Σ c over rows and columns, k being the partners they have in effect, 1/Σ_j B_ij². Both are
// too large where they fail, so D = (D₁⁻⁴ + D₂⁻⁴)^{-1/4} follows the smaller one: bench/permanents.cpp measures it.
// With 11ᵀ/N, whose λ is the one that equals one, I - BᵀB + 11ᵀ/N has the determinant Π(1-λ²). Missing rows share what
// the columns have left, r_j = 1 - Σ_i B_ij, and add r rᵀ/(N-n) to BᵀB.
namespace {

struct Estimate {
  double value;
  Matrix slope;  ///< In B, of no more rows than columns.
};

/// c(k) and its derivative.
std::pair<double, double> entropy_of_block(double k) {
  const double value = std::log(k) - log_gamma(k + 1) / k;
  return {value, 1 / k + log_gamma(k + 1) / (k * k) - digamma(k + 1) / k};
}

Estimate by_determinant(const Matrix& b) {
  const Index n = b.rows(), N = b.cols();
  Matrix inside = Matrix::Identity(N, N) - b.transpose() * b;
  inside.array() += 1 / double(N);
  const Vector left = Vector::Ones(N) - b.colwise().sum().transpose();
  if (N > n) inside -= left * left.transpose() / double(N - n);
  constexpr double rounding = 1e-10;  // certain links have λ = 1 as well
  inside.diagonal().array() += rounding;
  const Eigen::LLT<Matrix> factor(inside);
  const Matrix inverse = factor.solve(Matrix::Identity(N, N));
  Estimate made{-factor.matrixLLT().diagonal().array().log().sum(), b * inverse};
  if (N > n) made.slope.rowwise() -= (inverse * left).transpose() / double(N - n);
  return made;
}

Estimate by_partners(const Matrix& b) {
  const Index n = b.rows(), N = b.cols();
  Estimate made{double(N) * std::log(double(N)) - log_gamma(double(N) + 1), Matrix::Zero(n, N)};
  const Vector left = Vector::Ones(N) - b.colwise().sum().transpose(), across = b.rowwise().squaredNorm();
  Vector down = b.colwise().squaredNorm().transpose();
  const double missing = double(N - n);
  if (N > n) down += left.cwiseAbs2() / missing;
  Vector row_slope(n), column_slope(N);
  for (Index i = 0; i < n; ++i) {
    const auto [value, slope] = entropy_of_block(1 / across(i));
    made.value -= 0.5 * value;
    row_slope(i) = slope / (across(i) * across(i));
  }
  for (Index j = 0; j < N; ++j) {
    const auto [value, slope] = entropy_of_block(1 / down(j));
    made.value -= 0.5 * value;
    column_slope(j) = slope / (down(j) * down(j));
  }
  made.slope = row_slope.asDiagonal() * b + b * column_slope.asDiagonal();
  if (N == n) return made;
  const double each = left.squaredNorm() / (missing * missing);
  const auto [value, slope] = entropy_of_block(1 / each);
  made.value -= 0.5 * missing * value;
  const Vector by_left = column_slope.cwiseProduct(left) / missing + slope / (each * each) * left / missing;
  made.slope.rowwise() -= by_left.transpose();
  return made;
}

}  // namespace

PlanRemainder remainder_of_plan(const Matrix& plan) {
  if (plan.rows() > plan.cols()) {
    PlanRemainder turned = remainder_of_plan(plan.transpose());
    turned.slope.transposeInPlace();
    return turned;
  }
  constexpr double sharpness = 4, nothing = 1e-12;
  const double scale = double(plan.rows()) / plan.sum();
  const Matrix b = scale * plan;
  const Estimate many = by_determinant(b), few = by_partners(b);
  if (!(many.value > nothing) || !(few.value > nothing)) return {0, Matrix::Zero(plan.rows(), plan.cols())};
  const double larger = std::max(many.value, few.value), smaller = std::min(many.value, few.value);
  const double value = smaller * std::pow(1 + std::pow(smaller / larger, sharpness), -1 / sharpness);
  const double of_many = std::pow(value / many.value, sharpness + 1),
               of_few = std::pow(value / few.value, sharpness + 1);
  return {value, scale * (of_many * many.slope + of_few * few.slope)};
}

LinkRule rule_for(const GroupFacts& group) {
  const bool square = group.responses == group.features;
  if (group.binary && square) return LinkRule::counts;
  if (group.summable && std::max(group.responses, group.features) <= most_summed_rows) return LinkRule::exact;
  if (group.on_a_line) return LinkRule::continuum;
  return group.plan_held ? LinkRule::corrected : LinkRule::by_plan;
}

void LinkSums::add(LinkRule rule) {
  switch (rule) {
    case LinkRule::exact:
      ++exact;
      break;
    case LinkRule::counts:
      ++counts;
      break;
    case LinkRule::corrected:
      ++corrected;
      break;
    case LinkRule::continuum:
      ++continuum;
      break;
    case LinkRule::by_plan:
      ++by_plan;
      break;
  }
}

std::string LinkSums::in_words() const {
  std::vector<std::string> words;
  const auto say = [&](Index count, const char* how) {
    if (count > 0) words.push_back(fmt::format("{} group{} {}", count, count == 1 ? "" : "s", how));
  };
  say(exact, "exactly");
  say(counts, "by the number of ones");
  say(corrected, "by the transport plan and what it leaves out");
  say(continuum, "by the transport plan, as of points on a line");
  say(by_plan, "by the transport plan");
  return fmt::format("links summed in {}", fmt::join(words, ", "));
}

}  // namespace unshuffle
