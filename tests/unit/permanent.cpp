// Sums over links, the likelihood of small groups, and noise of several responses.
#include "links/permanent.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/random.hpp"
#include "core/special.hpp"
#include "likelihood/likelihood.hpp"
#include "likelihood/response_law.hpp"
#include "links/link_posterior.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {
namespace {

Matrix normal_matrix(Index rows, Index columns, RandomStream& random) {
  return Matrix::NullaryExpr(rows, columns, [&] { return random.normal(); });
}

TEST(LinkSums, covariance_of_sums_equals_enumeration) {
  RandomStream random(3, 0);
  for (const auto& [n, m] : {std::pair<Index, Index>{1, 1}, {1, 3}, {4, 4}, {3, 5}}) {
    const Matrix logs = normal_matrix(n, m, random);
    const PairScores scores = normal_matrix(2, n * m, random);
    std::vector<Index> order(static_cast<std::size_t>(m));
    std::iota(order.begin(), order.end(), Index{0});
    double total = 0;
    Vector mean = Vector::Zero(2);
    Matrix squares = Matrix::Zero(2, 2);
    do {
      double weight = 0;
      Vector sum = Vector::Zero(2);
      for (Index i = 0; i < n; ++i) {
        weight += logs(i, order[std::size_t(i)]);
        sum += scores.col(i + n * order[std::size_t(i)]);
      }
      total += std::exp(weight);
      mean += std::exp(weight) * sum;
      squares += std::exp(weight) * sum * sum.transpose();
    } while (std::next_permutation(order.begin(), order.end()));
    mean /= total;
    const Matrix expected = squares / total - mean * mean.transpose();
    EXPECT_LT((sum_over_links(logs, &scores).covariance - expected).norm(), 1e-10 * (1 + expected.norm())) << n << m;
  }
}

struct Clouds {
  Matrix plan;
  double remainder;  ///< D by summing over all links.
};

/// n responses and m ≥ n features in space.
Clouds random_clouds(Index n, Index m, Index outputs, double noise, RandomStream& random) {
  const Matrix s = normal_matrix(m, outputs, random);
  const Matrix y = s.topRows(n) + noise * normal_matrix(n, outputs, random);
  Matrix cost(n, m);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < m; ++j) cost(i, j) = (y.row(i) - s.row(j)).squaredNorm();
  transport::SolverOptions options;
  options.epsilon = 2 * noise * noise;
  options.relative = false;
  if (m > n) options.columns = transport::Sampled{};
  const Matrix plan = transport::Solver(options).solve(cost).plan();
  Matrix whole = Matrix::Zero(m, m);
  whole.topRows(n) = double(n) * plan;
  if (m > n) whole.bottomRows(m - n).rowwise() = (1 - whole.colwise().sum().array()).matrix() / double(m - n);
  const Matrix logs = whole.cwiseMax(1e-300).array().log();
  return {plan, sum_over_links(logs).log_mean + double(m) * std::log(double(m))};
}

TEST(PlanRemainder, is_near_the_sum_over_all_links) {
  RandomStream random(7, 0);
  for (const Index outputs : {1, 2, 3}) {
    for (const double noise : {2.0, 1.0, 0.5, 0.2, 0.05}) {
      for (const auto& [n, m] : {std::pair<Index, Index>{13, 13}, {9, 13}}) {
        double error = 0, size = 0;
        constexpr int draws = 4;
        for (int k = 0; k < draws; ++k) {
          const Clouds one = random_clouds(n, m, outputs, noise, random);
          error += (remainder_of_plan(one.plan).value - one.remainder) / draws;
          size += one.remainder / draws;
        }
        EXPECT_LT(std::abs(error), 0.05 + 0.2 * size) << outputs << " " << noise << " " << n;
      }
    }
  }
  EXPECT_EQ(remainder_of_plan(Matrix::Constant(1, 1, 1.0)).value, 0);
  EXPECT_NEAR(remainder_of_plan(Matrix::Identity(6, 6) / 6).value, 6 * std::log(6) - log_gamma(7), 0.02);
}

TEST(PlanRemainder, slope_agrees_with_differences) {
  RandomStream random(8, 0);
  for (const auto& [n, m] : {std::pair<Index, Index>{13, 13}, {5, 8}, {8, 5}}) {
    Matrix plan = random_clouds(std::min(n, m), std::max(n, m), 2, 0.6, random).plan;
    if (n > m) plan.transposeInPlace();
    const Matrix slope = remainder_of_plan(plan).slope;
    for (int k = 0; k < 6; ++k) {
      // Moves mass, of which there is one in all.
      const Index i = k % n, other = (k + 2) % n;
      Index j = 0, column = 0;
      plan.row(i).maxCoeff(&j);
      plan.row(other).maxCoeff(&column);
      const double h = 1e-5 * std::min(plan(i, j), plan(other, column));
      const auto at = [&](double by) {
        Matrix moved = plan;
        moved(i, j) += by;
        moved(other, column) -= by;
        return remainder_of_plan(moved).value;
      };
      const double expected = slope(i, j) - slope(other, column);
      EXPECT_NEAR((at(h) - at(-h)) / (2 * h), expected, 1e-3 * (1 + slope.cwiseAbs().maxCoeff()));
    }
  }
}

TEST(LinkRule, takes_the_most_accurate_that_can_be_afforded) {
  const GroupFacts small{
      .responses = 5, .features = 5, .summable = true, .binary = false, .on_a_line = true, .plan_held = true};
  EXPECT_EQ(rule_for(small), LinkRule::exact);
  GroupFacts large = small;
  large.features = 13;
  EXPECT_EQ(rule_for(large), LinkRule::continuum);
  large.on_a_line = false;
  EXPECT_EQ(rule_for(large), LinkRule::corrected);
  large.plan_held = false;
  EXPECT_EQ(rule_for(large), LinkRule::by_plan);
  GroupFacts weighted = small;
  weighted.summable = false;
  EXPECT_EQ(rule_for(weighted), LinkRule::continuum);
  GroupFacts binary = small;
  binary.binary = true;
  EXPECT_EQ(rule_for(binary), LinkRule::counts);
}

TEST(LinkPosterior, sums_over_all_links_of_few_rows) {
  RandomStream random(5, 0);
  const Matrix plan = normal_matrix(5, 5, random).array().exp();
  const LinkSum sum = sum_over_links(plan.array().log().matrix());
  const std::vector<Index> partner{2, 0, 1, 4, 3};
  const Vector found = link_posterior(plan, partner, RandomStream(1, 1));
  for (Index i = 0; i < 5; ++i) EXPECT_NEAR(found(i), sum.probability(i, partner[std::size_t(i)]), 1e-12);
}

/// Responses and features of a group; links are lost within it.
struct GroupSize {
  Index responses, features;
};

Problem in_groups(const std::vector<GroupSize>& sizes, const Matrix& noise_root, bool with_x, std::uint64_t seed) {
  RandomStream random(seed, 0);
  const Index outputs = noise_root.rows();
  std::vector<Vector> y, x, z;
  Problem made;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    for (Index k = 0; k < std::max(sizes[g].responses, sizes[g].features); ++k) {
      const Vector features = normal_matrix(2, 1, random), beside = normal_matrix(1, 1, random);
      Vector response = noise_root * normal_matrix(outputs, 1, random);
      for (Index o = 0; o < outputs; ++o)
        response(o) += features(0) - double(o + 1) * features(1) + (with_x ? 0.5 * beside(0) : 0) + 0.3;
      if (k < sizes[g].responses) {
        y.push_back(response);
        x.push_back(beside);
        made.response_groups.push_back(Index(g));
      }
      if (k < sizes[g].features) {
        z.push_back(features);
        made.feature_groups.push_back(Index(g));
      }
    }
  }
  const auto table = [](const std::vector<Vector>& rows) {
    Matrix all(Index(rows.size()), rows.front().size());
    for (Index i = 0; i < all.rows(); ++i) all.row(i) = rows[std::size_t(i)].transpose();
    return all;
  };
  made.y = table(y);
  if (with_x) made.x = table(x);
  made.z = table(z);
  return completed(made);
}

void expect_derivatives(LinkLikelihood& likelihood, const Vector& theta, double tolerance) {
  const Sample here = likelihood.at(theta, likelihood.has_hessian());
  const Matrix information = likelihood.information(theta);
  for (Index k = 0; k < theta.size(); ++k) {
    const double h = 1e-5;
    Vector above = theta, below = theta;
    above(k) += h;
    below(k) -= h;
    const Sample up = likelihood.at(above, false), down = likelihood.at(below, false);
    EXPECT_NEAR((up.value - down.value) / (2 * h), here.gradient(k), tolerance * (1 + std::abs(here.gradient(k)))) << k;
    const Vector column = (up.gradient - down.gradient) / (2 * h);
    const double accepted = likelihood.has_hessian() ? 1e-4 : 1e-2;
    EXPECT_LT((column - information.col(k)).norm(), accepted * (1 + column.norm())) << k;
    if (likelihood.has_hessian() && likelihood.sums().all_exact()) {
      EXPECT_LT((column - here.hessian.col(k)).norm(), accepted * (1 + column.norm())) << k;
    }
  }
}

TEST(ExactGroups, have_the_density_of_the_responses_and_its_derivatives) {
  for (const bool with_x : {false, true}) {
    const std::vector<GroupSize> sizes = with_x ? std::vector<GroupSize>{{4, 4}, {1, 1}, {3, 5}, {2, 2}}
                                                : std::vector<GroupSize>{{4, 4}, {1, 1}, {3, 5}, {5, 3}, {2, 2}};
    const Problem problem = in_groups(sizes, Matrix::Constant(1, 1, 0.4), with_x, 2);
    const auto bound = Linear{}.bound_to(problem);
    LinkLikelihood likelihood(problem, *bound, {});
    EXPECT_EQ(likelihood.sums().exact, Index(sizes.size()) - 1);
    Vector theta(bound->parameters() + 1);
    theta.setConstant(0.3);
    theta.tail(3) << 0.9, -0.8, std::log(0.5);
    expect_derivatives(likelihood, theta, 1e-6);
    const double epsilon = 0.5;
    const Vector w = theta.head(theta.size() - 1);
    const ResponseLaw law(problem.y);
    double expected = 0;
    for (const Block& block : blocks_of(problem)) {
      const auto n = Index(block.response_rows.size()), m = Index(block.feature_rows.size()), all = std::max(n, m);
      Matrix logs = Matrix::Zero(all, all);
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < m; ++j) {
          const Index row = block.response_rows[std::size_t(i)];
          const Matrix x = with_x ? Matrix(problem.x.row(row)) : Matrix(1, 0);
          const double f = predict_linked(*bound, x, problem.z.row(block.feature_rows[std::size_t(j)]), w)(0, 0);
          logs(i, j) = -std::pow(problem.y(row, 0) - f, 2) / epsilon - 0.5 * std::log(std::numbers::pi * epsilon);
        }
        logs.row(i).tail(all - m).setConstant(law.log_density(problem.y.row(block.response_rows[std::size_t(i)])));
      }
      expected -= sum_over_links(logs).log_mean;
    }
    EXPECT_NEAR(likelihood.at(theta, false).value, expected, 1e-6 * std::abs(expected));
  }
}

TEST(ExactGroups, stand_beside_groups_that_go_by_the_plan) {
  const Problem problem = in_groups({{4, 4}, {20, 20}, {6, 6}}, Matrix::Constant(1, 1, 0.4), false, 3);
  const auto bound = Linear{}.bound_to(problem);
  LikelihoodOptions options;
  options.evaluator.tolerance = 1e-12;
  LinkLikelihood likelihood(problem, *bound, options);
  EXPECT_EQ(likelihood.sums().exact, 2);
  EXPECT_EQ(likelihood.sums().continuum, 1);
  expect_derivatives(likelihood, Vector{{0.2, 0.9, -0.8, -0.7}}, 1e-4);
}

TEST(NoiseOfSeveralResponses, has_the_derivatives_of_its_differences) {
  const Matrix root{{1.0, 0.0}, {0.1, 0.2}};
  for (const NoiseCovariance kind : {NoiseCovariance::full, NoiseCovariance::diagonal, NoiseCovariance::equal}) {
    for (const bool with_x : {false, true}) {
      for (const Index rows : {3, 14}) {
        if (rows == 14 && !(with_x && kind == NoiseCovariance::full)) continue;  // these take longest
        const Problem problem = in_groups({{rows, rows}, {rows, rows}, {1, 1}}, root, with_x, 4);
        const auto bound = Linear{}.bound_to(problem);
        LikelihoodOptions options;
        options.noise_covariance = kind;
        options.evaluator.tolerance = 1e-12;
        LinkLikelihood likelihood(problem, *bound, options);
        EXPECT_EQ(rows == 3 ? likelihood.sums().exact : likelihood.sums().corrected, 2);
        const Index shapes = NoiseShape(kind, 2).parameters(), p = bound->parameters();
        Vector theta = Vector::LinSpaced(p + 1 + shapes, -0.6, 0.9);
        theta(p) = std::log(0.5);
        expect_derivatives(likelihood, theta, 1e-4);
      }
    }
  }
}

Entropic quick() {
  Entropic made;
  made.sensitivity.quick = true;
  return made;
}

// With links known it is multivariate regression.
TEST(NoiseOfSeveralResponses, is_that_of_multivariate_regression_where_links_are_known) {
  const Matrix root{{1.0, 0.0}, {0.07, 0.1}};
  const Problem problem = in_groups(std::vector<GroupSize>(200, {1, 1}), root, false, 5);
  const Fitted fitted = fit(problem, Linear{}, quick());
  Matrix design(problem.responses(), 3);
  design << Vector::Ones(problem.responses()), problem.z;
  const Matrix w = design.householderQr().solve(problem.y);
  const Matrix rest = problem.y - design * w, covariance = rest.transpose() * rest / double(problem.responses());
  for (Index k = 0; k < 6; ++k) EXPECT_NEAR(fitted.result().parameters(k), w.reshaped()(k), 1e-5);
  EXPECT_LT((fitted.context().law.noise_covariance - covariance).norm(), 1e-4 * covariance.norm());
  const Vector errors = fitted.result().std_errors();
  const Matrix inverse = (design.transpose() * design).inverse();
  for (Index k = 0; k < 6; ++k)
    EXPECT_NEAR(errors(k), std::sqrt(covariance(k / 3, k / 3) * inverse(k % 3, k % 3)), 0.02 * errors(k)) << k;
}

TEST(NoiseOfSeveralResponses, makes_units_matter_no_longer) {
  const Matrix root{{1.0, 0.0}, {0.07, 0.1}};
  const Problem problem = in_groups(std::vector<GroupSize>(40, {4, 4}), root, false, 6);
  Problem other = problem;
  other.y.col(1) *= 1000;
  const Fitted one = fit(problem, Linear{}, quick()), two = fit(other, Linear{}, quick());
  EXPECT_EQ(one.result().identifiable.verdict, two.result().identifiable.verdict);
  EXPECT_EQ(one.result().identifiable.verdict, Verdict::identified);
  const Vector units = Vector{{1, 1, 1, 1000, 1000, 1000}};
  const Vector errors = one.result().std_errors();
  const Vector back = two.result().parameters.cwiseQuotient(units);
  EXPECT_LT((back - one.result().parameters).cwiseQuotient(errors).cwiseAbs().maxCoeff(), 1e-3);
  EXPECT_LT((two.result().std_errors().cwiseQuotient(units) - errors).cwiseQuotient(errors).cwiseAbs().maxCoeff(),
            1e-2);
  EXPECT_NEAR(std::sqrt(one.context().law.noise_covariance(0, 0)), 1.0, 0.15);
  EXPECT_NEAR(std::sqrt(one.context().law.noise_covariance(1, 1)), 0.122, 0.02);

  // Saved and read again, predictions have each response's noise.
  const Fitted read = Fitted::from_json(two.to_json(), "fit");
  const auto [low, high] = read.predict_interval(Matrix(problem.responses(), 0), problem.z);
  const double width = (high - low).col(1).mean() / (high - low).col(0).mean();
  EXPECT_NEAR(width, std::sqrt(two.context().law.noise_covariance(1, 1) / two.context().law.noise_covariance(0, 0)),
              0.02 * width);
  EXPECT_EQ(read.match(other).pairs.size(), 160U);
}

}  // namespace
}  // namespace unshuffle
