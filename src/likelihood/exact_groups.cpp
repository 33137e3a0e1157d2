#include "likelihood/exact_groups.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/in_parallel.hpp"
#include "links/permanent.hpp"
#include "objective/costs.hpp"

namespace unshuffle {

// With C_ij = |y_i - f_ij|² and c(π) = Σ_i C_iπ(i), the links π of a group have probabilities ∝ e^{-c/ε}, E and Cov are
// theirs, and with r numbers in linked responses
//   N = (r/2) log(πε) - log mean_π e^{-c(π)/ε},
//   ∂N/∂w = E[∂c]/ε,     ∂N/∂λ = r/2 - E[c]/ε,     λ = log ε,
//   ∂²N/∂w² = E[∂²c]/ε - Cov(∂c)/ε²,  ∂²N/∂w∂λ = Cov(∂c, c)/ε² - E[∂c]/ε,  ∂²N/∂λ² = E[c]/ε - Var(c)/ε².
// A group with more responses than features is turned around, and its responses count relative to their density when
// they have no partner. docs/mathematics.md §5.6.

struct ExactGroups::Tables {
  const Vector& w;
  bool with_hessian;
  Matrix t{}, s{};              ///< Additive models: y - g and h.
  Matrix t_slope{}, s_slope{};  ///< For the Hessian: ∂g/∂w and ∂h/∂w.
  Matrix &on_t, &on_s;          ///< ∂N/∂t and ∂N/∂s; groups fill in their rows.
};

struct ExactGroups::Sums {
  double value = 0, by_log_epsilon = 0;
  Vector gradient;  ///< Of models that are not additive.
  Matrix hessian;
};

ExactGroups::ExactGroups(const Problem& problem, const Model& bound, std::vector<Block> groups,
                         const LogAbsence& log_absence)
    : problem_(problem), bound_(bound) {
  if (groups.empty()) return;
  x_ = bound.basis(Side::response, problem.x);
  z_ = bound.basis(Side::feature, problem.z);
  for (Block& block : groups) groups_.push_back({std::move(block.response_rows), std::move(block.feature_rows), {}});
  if (problem.has_prior()) weigh_by_prior();
  for (Group& group : groups_) {
    const auto n = Index(group.responses.size()), m = Index(group.features.size());
    if (n <= m) continue;
    if (group.log_weights.size() == 0) group.log_weights.setZero(n, m);
    for (Index i = 0; i < n; ++i) {
      const double alone = log_absence(problem.y.row(group.responses[std::size_t(i)]).transpose());
      group.log_weights.row(i).array() -= alone;
      constant_ -= alone;
    }
  }
}

void ExactGroups::weigh_by_prior() {
  std::vector<Index> group_of(std::size_t(problem_.responses()), -1), place(std::size_t(problem_.responses()), -1);
  std::vector<Index> of_feature(std::size_t(problem_.features()), -1), feature_place(of_feature);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    group.log_weights = log_weights_of_keys(problem_, group.responses, group.features);
    for (std::size_t i = 0; i < group.responses.size(); ++i) {
      group_of[std::size_t(group.responses[i])] = Index(g);
      place[std::size_t(group.responses[i])] = Index(i);
    }
    for (std::size_t j = 0; j < group.features.size(); ++j) {
      of_feature[std::size_t(group.features[j])] = Index(g);
      feature_place[std::size_t(group.features[j])] = Index(j);
    }
  }
  for (const auto& [response, feature, weight] : problem_.prior) {
    const Index g = group_of[std::size_t(response)];
    if (g < 0 || g != of_feature[std::size_t(feature)]) continue;
    groups_[std::size_t(g)].log_weights(place[std::size_t(response)], feature_place[std::size_t(feature)]) +=
        std::log(weight);
  }
}

Matrix ExactGroups::cost_of(const Group& group, const Tables& tables) const {
  const auto n = Index(group.responses.size()), m = Index(group.features.size());
  Matrix cost(n, m);
  if (bound_.additive() == nullptr) {
    const Matrix x = x_.cols() > 0 ? Matrix(x_(group.responses, Eigen::all)) : Matrix(n, 0);
    squared_costs(bound_, {x, problem_.y(group.responses, Eigen::all), z_(group.features, Eigen::all)}, tables.w, cost);
    return cost;
  }
  for (Index j = 0; j < m; ++j) {
    for (Index i = 0; i < n; ++i) {
      double sum = 0;
      for (Index o = 0; o < tables.t.cols(); ++o) {
        const double apart = tables.t(group.responses[std::size_t(i)], o) - tables.s(group.features[std::size_t(j)], o);
        sum += apart * apart;
      }
      cost(i, j) = sum;
    }
  }
  return cost;
}

/// (∂C, -C) of every pair.
Matrix ExactGroups::scores_of(const Group& group, const Tables& tables, const Matrix& cost, bool turned) const {
  const Index n = cost.rows(), m = cost.cols(), p = tables.s_slope.cols();
  PairScores scores(p + 1, n * m);
  for (Index j = 0; j < m; ++j) {
    const Index feature = group.features[std::size_t(j)];
    for (Index i = 0; i < n; ++i) {
      const Index response = group.responses[std::size_t(i)];
      auto score = scores.col(turned ? j + m * i : i + n * j);
      score.head(p) = tables.s_slope.row(feature).transpose();
      if (tables.t_slope.size() > 0) score.head(p) += tables.t_slope.row(response).transpose();
      score.head(p) *= -2 * (tables.t(response, 0) - tables.s(feature, 0));
      score(p) = -cost(i, j);
    }
  }
  return scores;
}

void ExactGroups::add_hessian(const Group& group, const Tables& tables, double epsilon, const Matrix& probability,
                              const Matrix& covariance, Sums& sums) const {
  const Index p = tables.s_slope.cols();
  sums.hessian -= covariance / (epsilon * epsilon);
  auto in_w = sums.hessian.topLeftCorner(p, p);
  const Matrix right = tables.s_slope(group.features, Eigen::all);
  const Vector columns = probability.colwise().sum().transpose(), rows = probability.rowwise().sum();
  in_w += (2 / epsilon) * right.transpose() * columns.asDiagonal() * right;
  if (tables.t_slope.size() == 0) return;
  const Matrix left = tables.t_slope(group.responses, Eigen::all);
  const Matrix both = left.transpose() * probability * right;
  in_w += (2 / epsilon) * (left.transpose() * rows.asDiagonal() * left + both + both.transpose());
}

void ExactGroups::add(const Group& group, const Tables& tables, double epsilon, Sums& sums) const {
  const Matrix cost = cost_of(group, tables);
  const Index n = cost.rows(), m = cost.cols();
  const bool turned = n > m;
  Matrix logs = -cost / epsilon;
  if (group.log_weights.size() > 0) logs += group.log_weights;
  if (turned) logs.transposeInPlace();
  const PairScores scores = tables.with_hessian ? scores_of(group, tables, cost, turned) : PairScores();
  const LinkSum sum = sum_over_links(logs, tables.with_hessian ? &scores : nullptr);
  const Matrix probability = turned ? Matrix(sum.probability.transpose()) : sum.probability;
  const double half = 0.5 * double(std::min(n, m) * problem_.outputs());
  const double expected = probability.cwiseProduct(cost).sum() / epsilon;
  sums.value += half * std::log(std::numbers::pi * epsilon) - sum.log_mean;
  sums.by_log_epsilon += half - expected;
  if (tables.with_hessian) {
    add_hessian(group, tables, epsilon, probability, sum.covariance, sums);
    sums.hessian(sums.hessian.rows() - 1, sums.hessian.cols() - 1) += expected;
  }
  add_slopes(group, tables, probability / epsilon, sums);
}

void ExactGroups::add_slopes(const Group& group, const Tables& tables, const Matrix& weights, Sums& sums) const {
  if (bound_.additive() == nullptr) {
    const TwoTables rows{x_.cols() > 0 ? Matrix(x_(group.responses, Eigen::all)) : Matrix(weights.rows(), 0),
                         problem_.y(group.responses, Eigen::all), z_(group.features, Eigen::all)};
    pull_back_costs(bound_, rows, weights, tables.w, sums.gradient);
    return;
  }
  const Matrix t = tables.t(group.responses, Eigen::all), s = tables.s(group.features, Eigen::all);
  tables.on_t(group.responses, Eigen::all) = 2 * (weights.rowwise().sum().asDiagonal() * t - weights * s);
  tables.on_s(group.features, Eigen::all) =
      -2 * (weights.transpose() * t - weights.colwise().sum().transpose().asDiagonal() * s);
}

// Groups are taken in pieces, which are added in order: the sum is the same for any number of threads.
Sample ExactGroups::at(const Vector& w, double epsilon, bool with_hessian) const {
  constexpr std::size_t piece = 256;
  const Index p = w.size(), n = problem_.responses(), m = problem_.features();
  Sample all{constant_, Vector::Zero(p + 1), with_hessian ? Matrix::Zero(p + 1, p + 1) : Matrix()};
  if (groups_.empty()) return all;
  const AdditiveModel* additive = bound_.additive();
  const bool sided = problem_.x.cols() > 0;
  Matrix on_t = Matrix::Zero(n, problem_.outputs()), on_s = Matrix::Zero(m, problem_.outputs());
  Tables tables{.w = w, .with_hessian = with_hessian, .on_t = on_t, .on_s = on_s};
  if (additive != nullptr) {
    tables.t = sided ? Matrix(problem_.y - additive->part(Side::response, x_, w)) : problem_.y;
    tables.s = additive->part(Side::feature, z_, w);
  }
  if (with_hessian && sided) tables.t_slope = additive->jacobian_part(Side::response, x_, w);
  if (with_hessian) tables.s_slope = additive->jacobian_part(Side::feature, z_, w);
  const std::size_t pieces = (groups_.size() + piece - 1) / piece;
  std::vector<Sums> sums(pieces, {0, 0, Vector::Zero(p), all.hessian});
  in_parallel(pieces, [&](std::size_t k) {
    for (std::size_t g = k * piece; g < std::min(groups_.size(), (k + 1) * piece); ++g)
      add(groups_[g], tables, epsilon, sums[k]);
  });
  Vector gradient = Vector::Zero(p);
  for (const Sums& one : sums) {
    all.value += one.value;
    all.gradient(p) += one.by_log_epsilon;
    gradient += one.gradient;
    if (with_hessian) all.hessian += one.hessian;
  }
  if (additive != nullptr && sided) additive->pull_back_part(Side::response, x_, w, -on_t, gradient);
  if (additive != nullptr) additive->pull_back_part(Side::feature, z_, w, on_s, gradient);
  all.gradient.head(p) = gradient;
  if (!with_hessian) return all;
  all.hessian.col(p).head(p) -= gradient;
  all.hessian.row(p).head(p) -= gradient.transpose();
  Matrix bend = Matrix::Zero(p, p);
  if (sided) additive->add_curvature_part(Side::response, x_, w, -on_t.col(0), bend);
  additive->add_curvature_part(Side::feature, z_, w, on_s.col(0), bend);
  all.hessian.topLeftCorner(p, p) += bend;
  return all;
}

}  // namespace unshuffle
