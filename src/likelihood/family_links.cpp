#include "likelihood/family_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "core/in_parallel.hpp"
#include "objective/batch.hpp"
#include "objective/transport_form.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

namespace {

/// Rows times ones of the two tables a count takes.
constexpr Index most_counted = 4'000'000;

/// Derivatives of one pair's log density, weighted by its probability and summed over a group.
struct GroupSlopes {
  double log_mean;
  Vector of_responses, of_features;  ///< In η, summed over partners.
  Shape of_shape = Shape::Zero();
};

}  // namespace

struct FamilyLinks::Group {
  std::vector<Index> responses, features;
  bool by_counts;
};

struct FamilyLinks::Parts {
  const Problem& problem;
  const Model& bound;
  const Family& family;
  Matrix response_design{}, feature_design{};  ///< η_ij = (A_i + C_j)·w + offsets.
  std::vector<Group> groups{};

  std::optional<Problem> planned{};  ///< The rows of large groups.
  TransportForm form{};
  std::unique_ptr<LinkLikelihood> plan{};
  Matrix planned_design{};

  [[nodiscard]] double offset(Side side, Index row) const {
    const Vector& all = side == Side::response ? problem.facts.response_offset : problem.facts.feature_offset;
    return all.size() > 0 ? all(row) : 0;
  }
  [[nodiscard]] double trials(Index row) const {
    return problem.facts.trials.size() > 0 ? problem.facts.trials(row) : 1;
  }

  [[nodiscard]] GroupSlopes slopes(const Group& group, const Vector& theta) const;
  [[nodiscard]] GroupSlopes slopes_by_counts(const Group& group, const Vector& eta) const;
};

GroupSlopes FamilyLinks::Parts::slopes_by_counts(const Group& group, const Vector& eta) const {
  const Vector p = eta.unaryExpr([&](double one) { return family.mean(one); });
  double ones = 0;
  for (const Index i : group.responses) ones += problem.y(i, 0);
  const CountSum sum = sum_over_counts(p, Index(ones));
  return {sum.log_mean, Vector::Zero(Index(group.responses.size())), sum.expected - p};
}

GroupSlopes FamilyLinks::Parts::slopes(const Group& group, const Vector& theta) const {
  const Index n = Index(group.responses.size()), m = Index(group.features.size()), p = feature_design.cols();
  const auto w = theta.head(p);
  Vector left(n), right(m);
  for (Index i = 0; i < n; ++i) {
    const Index row = group.responses[std::size_t(i)];
    left(i) = (response_design.size() > 0 ? response_design.row(row).dot(w) : 0) + offset(Side::response, row);
  }
  for (Index j = 0; j < m; ++j) {
    const Index row = group.features[std::size_t(j)];
    right(j) = feature_design.row(row).dot(w) + offset(Side::feature, row);
  }
  if (group.by_counts) return slopes_by_counts(group, right);
  Shape shape = Shape::Zero();
  for (Index k = 0; k < family.shapes(); ++k) shape(k) = theta(p + k);
  Matrix logs(n, m), by_eta(n, m), by_first(n, m), by_second(n, m);
  for (Index j = 0; j < m; ++j) {
    for (Index i = 0; i < n; ++i) {
      const Index row = group.responses[std::size_t(i)];
      const LogDensity pair = family.log_density({problem.y(row, 0), left(i) + right(j), trials(row)}, shape);
      logs(i, j) = pair.value;
      by_eta(i, j) = pair.gradient(0);
      by_first(i, j) = pair.gradient(1);
      by_second(i, j) = pair.gradient(2);
    }
  }
  const LinkSum sum = sum_over_links(logs);
  const Matrix expected = sum.probability.cwiseProduct(by_eta);
  return {sum.log_mean,
          expected.rowwise().sum(),
          expected.colwise().sum().transpose(),
          {sum.probability.cwiseProduct(by_first).sum(), sum.probability.cwiseProduct(by_second).sum()}};
}

FamilyLinks::FamilyLinks(const Problem& problem, const Model& bound, const Family& family, const EvaluatorOptions& plan)
    : parts_(std::make_unique<Parts>(Parts{problem, bound, family})) {
  if (!equal_weights(problem.response_weights) || !equal_weights(problem.feature_weights)) {
    throw InvalidInput(fmt::format("{} with unknown links has no use for row weights ({})",
                                   option("family", family.name()), option("weights")));
  }
  const AdditiveModel& additive = *bound.additive();
  const Vector zero = Vector::Zero(bound.parameters());
  if (problem.x.cols() > 0)
    parts_->response_design = additive.jacobian_part(Side::response, bound.basis(Side::response, problem.x), zero);
  parts_->feature_design = additive.jacobian_part(Side::feature, bound.basis(Side::feature, problem.z), zero);
  const RowFacts& facts = problem.facts;
  const bool separate = problem.x.cols() == 0 && facts.trials.size() == 0 && facts.response_offset.size() == 0;
  const bool binary = family.kind() == FamilyKind::binomial && separate;
  std::vector<Index> responses, features;
  for (Block& block : blocks_of(problem)) {
    const Index n = Index(block.response_rows.size()), m = Index(block.feature_rows.size());
    double ones = 0;
    for (const Index i : block.response_rows) ones += problem.y(i, 0);
    const bool countable = binary && n == m && (ones + 1) * double(m) <= double(most_counted);
    if (countable || (m <= most_summed_rows && n <= m)) {
      sums_.add(countable ? LinkRule::counts : LinkRule::exact);
      parts_->groups.push_back({std::move(block.response_rows), std::move(block.feature_rows), countable});
      continue;
    }
    if (n != m) {
      throw InvalidInput(
          fmt::format("{} responses and {} features in one group: with {} and unknown links every row needs its "
                      "partner, or at most "
                      "{} features for fewer responses; give groups ({})",
                      n, m, option("family", family.name()), most_summed_rows, option("group")));
    }
    if (!family.canonical() || !separate) {
      throw InvalidInput(fmt::format(
          "{} rows in one group: {} are summed exactly; more of them need gaussian, binomial, poisson or gamma, and "
          "neither features, trials nor an offset in the response table: give smaller groups ({})",
          n, most_summed_rows, option("group")));
    }
    sums_.add(LinkRule::by_plan);
    responses.insert(responses.end(), block.response_rows.begin(), block.response_rows.end());
    features.insert(features.end(), block.feature_rows.begin(), block.feature_rows.end());
  }
  if (sums_.by_plan == 0) return;
  parts_->planned = completed(some_rows(problem, responses, features));
  parts_->form = transport_form(*parts_->planned, bound, family);
  parts_->planned_design = parts_->feature_design(features, Eigen::all);
  parts_->plan = std::make_unique<LinkLikelihood>(
      *parts_->form.problem, *parts_->form.model,
      LikelihoodOptions{.evaluator = plan, .known_noise_sd = family.shapes() > 0 ? 0.0 : 1.0, .entropy = false});
}

FamilyLinks::~FamilyLinks() = default;

Index FamilyLinks::parameters() const { return parts_->feature_design.cols() + parts_->family.shapes(); }

// Groups are taken in pieces, which are added in order: the sum is the same for any number of threads.
void FamilyLinks::add_groups(const Vector& theta, Sample& sum, Matrix& squares) const {
  constexpr std::size_t piece = 256;
  const std::vector<Group>& groups = parts_->groups;
  const std::size_t pieces = (groups.size() + piece - 1) / piece;
  const Index p = parts_->feature_design.cols(), all = parameters();
  struct Sums {
    double value;
    Vector gradient;
    Matrix squares;
  };
  std::vector<Sums> sums(pieces, {0, Vector::Zero(all), Matrix::Zero(all, all)});
  in_parallel(pieces, [&](std::size_t k) {
    for (std::size_t g = k * piece; g < std::min(groups.size(), (k + 1) * piece); ++g) {
      const GroupSlopes slopes = parts_->slopes(groups[g], theta);
      Vector score(all);
      score.head(p) = parts_->feature_design(groups[g].features, Eigen::all).transpose() * slopes.of_features;
      if (parts_->response_design.size() > 0)
        score.head(p) += parts_->response_design(groups[g].responses, Eigen::all).transpose() * slopes.of_responses;
      score.tail(all - p) = slopes.of_shape.head(all - p);
      sums[k].value -= slopes.log_mean;
      sums[k].gradient -= score;
      sums[k].squares += score * score.transpose();
    }
  });
  for (const Sums& one : sums) {
    sum.value += one.value;
    sum.gradient += one.gradient;
    squares += one.squares;
  }
}

// With θ_j = θ(η_j), b_j and μ_j = b'(θ_j), and the plan's likelihood Q of the kernel exp(-(y_i - θ_j)²/(2φ))/√(2πφ),
//   N = Q - (n/2) log(2πφ) + Σ_j (b_j - θ_j²/2)/φ - Σ_i (y_i²/(2φ) + c(y_i, φ)).
void FamilyLinks::add_plan(const Vector& theta, bool with_hessian, Sample& sum) {
  const Family& family = parts_->family;
  const Matrix& design = parts_->planned_design;
  const Vector y = parts_->planned->y.col(0);
  const Vector& offset = parts_->planned->facts.feature_offset;
  const Index p = design.cols(), n = y.size();
  const bool shaped = family.shapes() > 0;
  const double log_phi = shaped ? theta(p) : 0, phi = std::exp(log_phi);
  Vector inner(p + 1);
  inner << theta.head(p), std::numbers::ln2 + log_phi;
  const Sample plan = parts_->plan->at(inner, with_hessian);
  Vector eta = design * theta.head(p);
  if (offset.size() > 0) eta += offset;
  Vector slope(n), bend(n);
  double features = 0, constants = 0, by_tau = 0, by_tau_twice = 0;
  for (Index j = 0; j < n; ++j) {
    const CanonicalPoint at = family.canonical_point(eta(j));
    const double away = family.mean(eta(j)) - at.theta;
    features += at.cumulant - 0.5 * at.theta * at.theta;
    slope(j) = away * at.theta_slope / phi;
    bend(j) = ((family.mean_slope(eta(j)) - at.theta_slope) * at.theta_slope + away * at.theta_bend) / phi;
  }
  const CanonicalPoint origin = family.canonical_point(0);
  for (Index i = 0; i < n; ++i) {
    const LogDensity here = family.log_density({y(i), 0, 1}, Shape(log_phi, 0));
    const double coupled = (y(i) * origin.theta - origin.cumulant) / phi;
    constants += here.value - coupled + 0.5 * y(i) * y(i) / phi;
    by_tau += here.gradient(1) + coupled - 0.5 * y(i) * y(i) / phi;
    by_tau_twice += here.hessian(1, 1) - coupled + 0.5 * y(i) * y(i) / phi;
  }
  sum.value += plan.value - 0.5 * double(n) * std::log(2 * std::numbers::pi * phi) + features / phi - constants;
  sum.gradient.head(p) += plan.gradient.head(p) + design.transpose() * slope;
  if (shaped) sum.gradient(p) += plan.gradient(p) - 0.5 * double(n) - features / phi - by_tau;
  if (!with_hessian) return;
  sum.hessian.topLeftCorner(p, p) += plan.hessian.topLeftCorner(p, p) + design.transpose() * bend.asDiagonal() * design;
  if (!shaped) return;
  const Vector mixed = plan.hessian.col(p).head(p) - design.transpose() * slope;
  sum.hessian.col(p).head(p) += mixed;
  sum.hessian.row(p).head(p) += mixed.transpose();
  sum.hessian(p, p) += plan.hessian(p, p) + features / phi - by_tau_twice;
}

Sample FamilyLinks::evaluate(const Vector& theta, bool with_hessian, Matrix& squares) {
  Sample sum;
  sum.gradient = Vector::Zero(parameters());
  squares = Matrix::Zero(parameters(), parameters());
  add_groups(theta, sum, squares);
  if (with_hessian) sum.hessian = squares;
  if (parts_->plan) add_plan(theta, with_hessian, sum);
  return sum;
}

Sample FamilyLinks::at(const Vector& theta, bool with_hessian) {
  Matrix squares;
  return evaluate(theta, with_hessian, squares);
}

Matrix FamilyLinks::scores(const Vector& theta) {
  Matrix squares;
  (void)evaluate(theta, false, squares);
  return squares;
}

Matrix FamilyLinks::curvature(const Vector& theta) {
  Matrix squares;
  Sample here = evaluate(theta, true, squares);
  const Index all = parameters(), p = parts_->feature_design.cols();
  if (parts_->plan && all > p) {  // its column in log φ came by a one-sided difference
    Vector inner(p + 1);
    inner << theta.head(p), std::numbers::ln2 + theta(p);
    here.hessian += parts_->plan->information(inner) - parts_->plan->at(inner, true).hessian;
  }
  if (parts_->groups.empty()) return here.hessian;
  Matrix by_groups = Matrix::Zero(all, all);
  for (Index k = 0; k < all; ++k) {
    const double step = 1e-4 / std::sqrt(std::max(here.hessian(k, k) / double(groups()), 1e-12));
    const auto gradient = [&](double by) {
      Vector moved = theta;
      moved(k) += by;
      Sample sum;
      sum.gradient = Vector::Zero(all);
      Matrix ignored = Matrix::Zero(all, all);
      add_groups(moved, sum, ignored);
      return sum.gradient;
    };
    by_groups.col(k) = (gradient(step) - gradient(-step)) / (2 * step);
  }
  return here.hessian - squares + 0.5 * (by_groups + by_groups.transpose());
}

}  // namespace unshuffle
