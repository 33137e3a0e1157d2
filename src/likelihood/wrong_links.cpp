#include "likelihood/wrong_links.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "core/in_parallel.hpp"
#include "core/random.hpp"
#include "core/special.hpp"

namespace unshuffle {

// Link i is wrong with probability α, and then points at any row of its block. With z̄ the mean of the block's basis
// rows, in which f is affine, y_i is on average over what the link may point at
//   E y_i = f̃_i = f(x_i, (1-α) z_i + α z̄).
// Regression of y on f̃ therefore finds w whatever the noise is, and where the model is too simple, what regression on
// the right links would find (Lahiri & Larsen 2005; Chambers 2009). It needs α.
//
// Let s_i = f(x_i, z_i) - f(x_i, z̄) be the part of the prediction due to z, and t_i = y_i - f(x_i, z̄) the part of the
// response left for it. Pairs (s_i, t_i) are drawn from (1-α) P + α S⊗T, P being the law of right links, so for any
// region R
//   α ≤ (share of rows in R) / (S⊗T)(R),
// with equality if right links never lie in R. R contains the pairs that contradict each other most: with a and b the
// normal scores of s and t, those with the largest ρ(a²+b²) - 2ab, least likely under a normal copula of correlation ρ.
// Nothing else is assumed about P, so the bound holds for any noise. S⊗T is sampled by pairing rows at random within
// blocks. docs/mathematics.md §7.
namespace {

constexpr double correlation = 0.7;  // ρ; regions for 0.5 to 0.9 give much the same rate

/// The links that are not known, block by block.
std::vector<std::vector<Index>> open_links_by_block(const CandidateLinks& links) {
  if (links.blocks.empty()) {
    std::vector<Index> all(std::size_t(links.open()));
    std::iota(all.begin(), all.end(), links.known);
    return {all};
  }
  std::vector<std::vector<Index>> members(std::size_t(*std::max_element(links.blocks.begin(), links.blocks.end()) + 1));
  for (Index i = links.known; i < links.size(); ++i) members[std::size_t(links.blocks[std::size_t(i)])].push_back(i);
  return members;
}

}  // namespace

LinkedRows averaged(const CandidateLinks& links, double share) {
  LinkedRows made = links.rows;
  for (const std::vector<Index>& members : open_links_by_block(links)) {
    if (members.empty()) continue;
    Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(made.z.cols());
    for (const Index i : members) mean += links.rows.z.row(i);
    mean /= double(members.size());
    for (const Index i : members) made.z.row(i) += share * (mean - links.rows.z.row(i));
  }
  return made;
}

namespace {

/// Each row's normal score; equal values have equal ones.
Vector normal_scores(const Vector& values) {
  const Index n = values.size();
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) { return values(a) < values(b); });
  Vector scores(n);
  for (Index begin = 0, end = 0; begin < n; begin = end) {
    while (end < n && values(order[std::size_t(end)]) == values(order[std::size_t(begin)])) ++end;
    const double score = normal_score(0.5 * double(begin + end) / double(n));
    for (Index k = begin; k < end; ++k) scores(order[std::size_t(k)]) = score;
  }
  return scores;
}

double contradiction(double a, double b) { return correlation * (a * a + b * b) - 2 * a * b; }

/// Contradictions of rows paired at random within their blocks.
std::vector<double> at_random(const CandidateLinks& links, const Vector& s, const Vector& t, std::uint64_t seed) {
  const Index open = links.open();
  const Index rounds = std::clamp<Index>(200'000 / open, 2, 100);
  std::vector<double> drawn;
  drawn.reserve(std::size_t(rounds * open));
  RandomStream random(seed, Stream::partners_at_random);
  for (const std::vector<Index>& members : open_links_by_block(links)) {
    std::vector<Index> partners = members;
    for (Index round = 0; round < rounds; ++round) {
      shuffle(partners, random);
      for (std::size_t k = 0; k < members.size(); ++k)
        drawn.push_back(contradiction(s(partners[k] - links.known), t(members[k] - links.known)));
    }
  }
  return drawn;
}

}  // namespace

bool averages_over_partners(const Model& bound) { return bound.linear_in_parameters(); }

MismatchRate largest_mismatch_rate(const Model& bound, const CandidateLinks& links, const Vector& w,
                                   std::uint64_t seed) {
  MismatchRate made;
  made.influence = Vector::Zero(links.size());
  const Index open = links.open();
  Vector weights = links.weights_or_one().tail(open);
  if (open == 0 || !(weights.sum() > 0)) return made;
  weights /= weights.sum();
  const LinkedRows mean = averaged(links, 1);
  const Matrix middle = predict_pairs(bound, mean.x, mean.z, w).bottomRows(open);
  const Matrix said = predict_pairs(bound, links.rows.x, links.rows.z, w).bottomRows(open) - middle;
  // With several responses: the direction that the features explain best.
  const Eigen::SelfAdjointEigenSolver<Matrix> axes(said.transpose() * said);
  const Vector axis = axes.eigenvectors().rightCols(1);
  const Vector s = normal_scores(said * axis), t = normal_scores((links.rows.y.bottomRows(open) - middle) * axis);

  std::vector<double> random = at_random(links, s, t, seed);
  std::sort(random.begin(), random.end());
  Vector observed(open);
  for (Index i = 0; i < open; ++i) observed(i) = contradiction(s(i), t(i));

  // The smaller R, the fewer right links are in it, and the fewer rows to count. The size with the lowest upper
  // confidence limit is used; errors are those of the rate in the largest R, so that a count that is low by chance is
  // not taken as exact.
  constexpr double largest = 0.4, smallest = 0.01, fewest_rows = 50, errors = 3;
  double in_largest = 0, lowest_end = HUGE_VAL;
  for (double share = largest; share == largest || (share >= smallest && share * double(open) >= fewest_rows);
       share /= 2) {
    const double limit = random[std::size_t((1 - share) * double(random.size()))];
    const auto beyond = double(random.end() - std::lower_bound(random.begin(), random.end(), limit));
    const double expected = beyond / double(random.size());
    const Vector inside = (observed.array() >= limit).cast<double>();
    const double rate = weights.dot(inside) / expected, one_row = 1 / (double(open) * expected);
    if (share == largest) in_largest = std::max(rate, one_row);
    const double variance = in_largest * (weights.squaredNorm() / expected + 1 / beyond);
    const double end = rate + errors * std::sqrt(variance);
    if (end >= lowest_end) continue;
    lowest_end = end;
    made.rate = std::min(1.0, rate);
    made.variance = variance;
    made.influence.tail(open) = weights.cwiseProduct(inside / expected - Vector::Constant(open, rate));
  }
  return made;
}

namespace {

// Each link contributes  M⁻¹ (Σ_k J̃ᵀr̃ + J̃ᵀs·(its contribution to the error of α))  to the error of w, as ∂f̃/∂α = -s.
Matrix adjusted_covariance(const Model& bound, const LinkedRows& expected, const LeastSquares& solved,
                           const Matrix& said, const Vector& weights, const MismatchRate& mismatch) {
  const Index n = expected.size();
  const Matrix jacobian = linked_jacobian(bound, expected, solved.parameters);
  const Matrix r = residuals(bound, expected, solved.parameters);
  Matrix scores = Matrix::Zero(n, jacobian.cols());
  Vector by_rate = Vector::Zero(jacobian.cols());
  for (Index k = 0; k < r.cols(); ++k) {
    const auto part = jacobian.middleRows(k * n, n);
    scores.array() += part.array().colwise() * (weights.array() * r.col(k).array());
    by_rate += part.transpose() * weights.cwiseProduct(said.col(k));
  }
  scores.noalias() += mismatch.influence * by_rate.transpose();
  const Matrix inverse = balanced_inverse(solved.matrix);
  return inverse * gram(scores) * inverse;
}

// Residuals of the open links are those of right and of wrong ones: E|r|² = (1-α) oσ² + α E|t_i - s_j|², and as s has
// mean zero in its block, E|t_i - s_j|² = E|t|² + E|s|².
double noise_of_right_links(const CandidateLinks& links, const Matrix& r, const Matrix& said, double rate) {
  constexpr double smallest_share = 1e-3;  // of the squares; less cannot be told from none
  const Index open = links.open();
  const Matrix s = said.bottomRows(open), t = s + r.bottomRows(open);
  const double right_rows = double(links.known) + (1 - rate) * double(open);
  const double squares = r.squaredNorm() - rate * (s.squaredNorm() + t.squaredNorm());
  return std::max(squares, smallest_share * r.squaredNorm()) / (right_rows * double(r.cols()));
}

}  // namespace

AdjustedFit fit_adjusted(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                         std::uint64_t seed) {
  AdjustedFit made;
  made.mismatch = largest_mismatch_rate(bound, links, linked.parameters, seed);
  // The correction divides by 1-α, whose error should not exceed its value.
  const double rate = std::min(made.mismatch.rate, std::max(0.0, 1 - std::sqrt(made.mismatch.variance)));
  const LinkedRows expected = averaged(links, rate), mean = averaged(links, 1);
  const Vector weights = links.weights_or_one();
  const LeastSquares solved = least_squares(bound, expected, linked.parameters, weights);
  made.parameters = solved.parameters;
  const Matrix r = residuals(bound, links.rows, made.parameters);
  const Matrix said = residuals(bound, mean, made.parameters) - r;
  made.covariance = adjusted_covariance(bound, expected, solved, said, weights, made.mismatch);
  made.noise_variance = noise_of_right_links(links, r, said, rate);
  return made;
}

// If w is right, E y_i = f(x_i, z̄) + c s_i with c = 1-α, so Jᵀ(y - f(x, z̄) - c s) has mean zero for one c; without any
// right link, for c = 0. It is compared with the errors Σ J r of regression itself, r being its residuals: an estimate
// more efficient than regression differs from it by less than those (Hausman 1978).
namespace {

using Solver = Eigen::CompleteOrthogonalDecomposition<Matrix>;

/// Of a sum of products with ones on its diagonal; directions that are only rounding do not count.
Solver solver_of(const Matrix& matrix) {
  Solver made;
  made.setThreshold(1e-10);
  made.compute(matrix);
  return made;
}

class Moments {
 public:
  Moments(const Model& bound, const CandidateLinks& links, const Vector& w)
      : bound_(bound),
        links_(links),
        weights_(links.weights_or_one().tail(links.open())),
        mean_(averaged(links, 1)),
        jacobian_(linked_jacobian(bound, links.rows, w)) {
    const LeastSquares all = least_squares(bound, links.rows, w, links.weights);
    const Matrix left = residuals(bound, links.rows, all.parameters);
    Matrix errors = Matrix::Zero(links.open(), w.size());
    for (Index k = 0; k < left.cols(); ++k) errors.array() += part(k).array().colwise() * open_column(left, k).array();
    // In units of these errors the scale of a column does not matter.
    unit_ = errors.colwise().norm().transpose().unaryExpr([](double e) { return e > 0 ? 1 / e : 0.0; });
    solver_ = solver_of(gram(errors * unit_.asDiagonal()));
  }

  [[nodiscard]] Index rank() const { return solver_.rank(); }

  /// f(x, z̄; w).
  [[nodiscard]] Matrix middle(const Vector& w) const { return predict_pairs(bound_, mean_.x, mean_.z, w); }

  /// Jᵀv over the open links.
  [[nodiscard]] Vector of(const Matrix& values) const {
    Vector sum = Vector::Zero(unit_.size());
    for (Index k = 0; k < values.cols(); ++k) sum += part(k).transpose() * open_column(values, k);
    return unit_.cwiseProduct(sum);
  }
  [[nodiscard]] double product(const Vector& a, const Vector& b) const { return a.dot(solver_.solve(b)); }

 private:
  [[nodiscard]] Eigen::Block<const Matrix> part(Index k) const {
    return jacobian_.block(k * links_.size() + links_.known, 0, links_.open(), jacobian_.cols());
  }
  [[nodiscard]] Vector open_column(const Matrix& values, Index k) const {
    return weights_.cwiseProduct(values.col(k).tail(links_.open()));
  }

  const Model& bound_;
  const CandidateLinks& links_;
  Vector weights_;  // of the open links
  LinkedRows mean_;
  Matrix jacobian_;
  Vector unit_;
  Solver solver_;
};

}  // namespace

Contrast contrast_with_regression(const Model& bound, const CandidateLinks& links, const Vector& w) {
  if (!averages_over_partners(bound) || links.open() == 0) return {};
  const Moments moments(bound, links, w);
  const Matrix middle = moments.middle(w);
  const Vector moved = moments.of(links.rows.y - middle);
  const Vector per_share = moments.of(predict_pairs(bound, links.rows.x, links.rows.z, w) - middle);
  const double curvature = moments.product(per_share, per_share);
  const Index freedom = moments.rank() - 1;
  if (freedom < 1 || !(curvature > 0)) return {};
  const double right = std::clamp(moments.product(per_share, moved) / curvature, 0.0, 1.0);
  const Vector rest = moved - right * per_share;
  return {std::max(0.0, moments.product(rest, rest)), freedom, right};
}

double agreement_with_regression(const Model& bound, const CandidateLinks& links, const Vector& w) {
  const Contrast contrast = contrast_with_regression(bound, links, w);
  return contrast.freedom > 0 ? chi_squared_tail(contrast.squares, double(contrast.freedom)) : 1;
}

namespace {

/// An orthonormal basis of the span of the given columns; surplus columns are zero.
struct Axes {
  Matrix columns;
  Index count = 0;
};

/// Lengths below 1e-5, of columns of length one, are taken for rounding.
Axes axes_of(const Matrix& columns, const Vector& lengths) {
  constexpr double least_square = 1e-10;
  const Vector scale = lengths.unaryExpr([](double length) { return length > 0 ? 1 / length : 0.0; });
  const Matrix scaled = columns * scale.asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(gram(scaled));
  const Vector shrink =
      eigen.eigenvalues().unaryExpr([](double v) { return v > least_square ? 1 / std::sqrt(v) : 0.0; });
  return {scaled * eigen.eigenvectors() * shrink.asDiagonal(), (shrink.array() > 0).count()};
}

/// Share of random pairings within blocks that explain `left`, the part of the open responses not explained by the mean
/// rows, as well as the given order does. `slopes` is ∂s/∂w of the open links, outputs stacked.
double share_of_pairings_as_good(const CandidateLinks& links, const Matrix& slopes, const Matrix& left) {
  constexpr std::size_t pieces = 50;
  constexpr Index pairings_of_a_piece = 400, at_once = 16;  // a product with many is faster than many products with one
  const Matrix axes = axes_of(slopes, slopes.colwise().norm().transpose()).columns;
  const Vector weights = links.weights_or_one().tail(links.open());
  const std::vector<std::vector<Index>> blocks = open_links_by_block(links);
  const Index rows = left.rows(), outputs = left.cols();
  const Matrix weighted = weights.asDiagonal() * left;
  /// Every response beside its partner's slopes.
  const auto arrange = [&](const std::vector<std::vector<Index>>& partners, Eigen::Ref<Vector> beside) {
    for (std::size_t b = 0; b < blocks.size(); ++b)
      for (std::size_t i = 0; i < blocks[b].size(); ++i)
        for (Index k = 0; k < outputs; ++k)
          beside(k * rows + partners[b][i] - links.known) = weighted(blocks[b][i] - links.known, k);
  };
  const auto explained = [&](const Matrix& beside) -> Vector {
    return (axes.transpose() * beside).colwise().squaredNorm();
  };
  Matrix observed = Matrix::Zero(rows * outputs, 1);
  arrange(blocks, observed.col(0));
  const double in_order = (1 - 1e-12) * explained(observed)(0);
  std::vector<int> as_good(pieces, 0);
  in_parallel(pieces, [&](std::size_t piece) {
    RandomStream random(0, Stream::pairings_at_random, piece);
    std::vector<std::vector<Index>> partners = blocks;
    Matrix beside = Matrix::Zero(rows * outputs, at_once);
    for (Index done = 0; done < pairings_of_a_piece; done += at_once) {
      for (Index k = 0; k < at_once; ++k) {
        for (std::vector<Index>& members : partners) shuffle(members, random);
        arrange(partners, beside.col(k));
      }
      as_good[piece] += static_cast<int>((explained(beside).array() >= in_order).count());
    }
  });
  const int count = std::accumulate(as_good.begin(), as_good.end(), 0);
  return (1.0 + count) / (1.0 + double(pieces * pairings_of_a_piece));
}

// With B an orthonormal basis of what the slopes add to the mean rows' own A, the sums Bᵀ left have mean zero when no
// link is right. Their errors, like those of Aᵀ left, which is zero by regression, are those of Σ_i (A_i, B_i) r_i,
// with r the residuals of regression on both. (The mean rows of groups differ, so A may have as many columns as there
// are coefficients: its rank does not determine that of B.)
/// The p-value of these sums; slopes and `left` as above, `mean_slopes` those of the mean rows, all multiplied by the
/// root of the row weights.
double chance_of_sums(const Matrix& mean_slopes, const Matrix& slopes, const Matrix& left) {
  const auto lengths = [](const Matrix& columns) { return Vector(columns.colwise().norm().transpose()); };
  // The mean of a centred column is its rounding error, as is what a constant one adds to its mean.
  constexpr double rounding = 1e-12;
  const Vector negligible = rounding * (lengths(mean_slopes) + lengths(slopes));
  const auto without_rounding = [&](const Vector& length) -> Vector {
    return (length.array() > negligible.array()).select(length, 0.0);
  };
  const Axes mean = axes_of(mean_slopes, without_rounding(lengths(mean_slopes)));
  Matrix added = slopes;
  for (int again = 0; again < 2; ++again) added -= mean.columns * (mean.columns.transpose() * added);
  const Axes own = axes_of(added, without_rounding(lengths(slopes)));
  if (own.count == 0) return 1;
  Matrix both(left.size(), mean.columns.cols() + own.columns.cols());
  both << mean.columns, own.columns;
  Vector sums = both.transpose() * left.reshaped();
  sums.head(mean.columns.cols()).setZero();
  const Matrix unexplained = left - (both * sums).reshaped(left.rows(), left.cols());
  if (unexplained.isZero(0)) return sums.isZero(0) ? 1 : 0;
  Matrix errors = Matrix::Zero(left.rows(), both.cols());
  for (Index k = 0; k < left.cols(); ++k)
    errors.array() += both.middleRows(k * left.rows(), left.rows()).array().colwise() * unexplained.col(k).array();
  const Vector unit = errors.colwise().norm().transpose().unaryExpr([](double e) { return e > 0 ? 1 / e : 0.0; });
  const Vector scaled = unit.cwiseProduct(sums);
  const double statistic = scaled.dot(solver_of(gram(errors * unit.asDiagonal())).solve(scaled));
  return chi_squared_tail(std::max(0.0, statistic), double(own.count));
}

}  // namespace

double significance_of_order(const Model& bound, const CandidateLinks& links) {
  constexpr Index few = 1000;  // χ² is not to be trusted with
  if (links.open() == 0) return 1;
  const Vector zero = Vector::Zero(bound.parameters());
  std::vector<Index> open(std::size_t(links.open()));
  std::iota(open.begin(), open.end(), links.known);
  const LinkedRows mean = subset(averaged(links, 1), open);
  const Vector weights = links.weights_or_one()(open);
  const LeastSquares without = least_squares(bound, mean, zero, weights);
  const Matrix left = residuals(bound, mean, without.parameters);
  const Matrix mean_slopes = linked_jacobian(bound, mean, zero);
  const Matrix slopes = linked_jacobian(bound, subset(links.rows, open), zero) - mean_slopes;
  if (links.open() <= few) return share_of_pairings_as_good(links, slopes, left);
  const Vector root = weights.cwiseSqrt(), root_of_all = root.replicate(left.cols(), 1);
  return chance_of_sums(root_of_all.asDiagonal() * mean_slopes, root_of_all.asDiagonal() * slopes,
                        root.asDiagonal() * left);
}

}  // namespace unshuffle
