// Sums over all links of a group, and the likelihood of a family when the links are unknown.
#include "likelihood/family_links.hpp"
#include "likelihood/marginal_misfit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "objective/transport_form.hpp"
#include "support/complaint.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {
namespace {

Matrix random_matrix(Index rows, Index columns, double scale, RandomStream& random) {
  return Matrix::NullaryExpr(rows, columns, [&] { return scale * random.normal(); });
}

/// By trying every way to give each row a column.
LinkSum by_enumeration(const Matrix& logs) {
  const Index n = logs.rows(), m = logs.cols();
  std::vector<Index> order(static_cast<std::size_t>(m));
  std::iota(order.begin(), order.end(), Index{0});
  double sum = 0, ways = 0;
  Matrix shares = Matrix::Zero(n, m);
  do {
    double log_weight = 0;
    for (Index i = 0; i < n; ++i) log_weight += logs(i, order[std::size_t(i)]);
    const double weight = std::exp(log_weight);
    sum += weight;
    ++ways;
    for (Index i = 0; i < n; ++i) shares(i, order[std::size_t(i)]) += weight;
  } while (std::next_permutation(order.begin(), order.end()));
  return {std::log(sum / ways), shares / sum};
}

TEST(LinkSums, equal_enumeration) {
  RandomStream random(2, 0);
  for (const auto& [n, m] : {std::pair<Index, Index>{1, 1}, {2, 2}, {5, 5}, {6, 6}, {3, 5}, {1, 4}}) {
    const Matrix logs = random_matrix(n, m, 2, random);
    const LinkSum found = sum_over_links(logs), expected = by_enumeration(logs);
    EXPECT_NEAR(found.log_mean, expected.log_mean, 1e-10) << n << m;
    EXPECT_LT((found.probability - expected.probability).cwiseAbs().maxCoeff(), 1e-10) << n << m;
  }
}

TEST(LinkSums, survive_rows_that_compete_for_one_column) {
  // Whatever rows and columns are multiplied by, the probabilities stay; only the second column has room for row 2.
  RandomStream random(4, 0);
  const Matrix plain = random_matrix(6, 6, 1, random);
  const LinkSum expected = sum_over_links(plain);
  Matrix scaled = plain;
  for (Index k = 0; k < 6; ++k) scaled.col(k).array() -= 300 * double(k);
  const LinkSum found = sum_over_links(scaled);
  EXPECT_NEAR(found.log_mean + 300 * 15, expected.log_mean, 1e-8);
  EXPECT_LT((found.probability - expected.probability).cwiseAbs().maxCoeff(), 1e-8);
  EXPECT_EQ(sum_over_links(Matrix::Constant(3, 3, std::nan(""))).log_mean, -HUGE_VAL);
  Matrix certain = Matrix::Constant(6, 6, -2000);
  certain.diagonal().setZero();
  EXPECT_NEAR(sum_over_links(certain).log_mean, -std::log(720), 1e-9);
  EXPECT_LT((sum_over_links(certain).probability - Matrix::Identity(6, 6)).norm(), 1e-12);
}

TEST(LinkSums, counts_equal_links_of_binary_rows) {
  RandomStream random(5, 0);
  for (const Index ones : {0, 1, 4, 7}) {
    const Vector p = Vector::NullaryExpr(7, [&] { return random.uniform(); });
    Matrix logs(7, 7);
    for (Index i = 0; i < 7; ++i) logs.row(i) = (i < ones ? p : Vector(1 - p.array())).array().log().transpose();
    const LinkSum links = sum_over_links(logs);
    const CountSum counts = sum_over_counts(p, ones);
    EXPECT_NEAR(counts.log_mean, links.log_mean, 1e-10) << ones;
    const Vector expected = links.probability.topRows(ones).colwise().sum().transpose();
    EXPECT_LT((counts.expected - expected).cwiseAbs().maxCoeff(), 1e-10) << ones;
  }
}

struct Design {
  FamilyKind kind;
  Index rows, group;
  bool x = false;
};

Problem shuffled(const Design& design, const Vector& w, std::uint64_t seed) {
  RandomStream random(seed, 0);
  const Family& family = family_of(design.kind);
  const Index columns = w.size() - 1 - (design.x ? 1 : 0);
  Problem made{.y = Matrix(design.rows, 1)};
  if (design.x) made.x = random_matrix(design.rows, 1, 1, random);
  made.z = random_matrix(design.rows, columns, 1, random);
  made.z.col(0) = (0.5 * made.z.col(0).array()).exp() - 1.1;  // no two features of one law
  for (Index i = 0; i < design.rows; ++i) {
    // Within its group every response moves on by one row.
    const Index first = i - i % design.group, size = std::min(design.group, design.rows - first);
    const Index partner = first + (i - first + 1) % size;
    double eta = w(0) + made.z.row(partner).dot(w.tail(columns));
    if (design.x) eta += w(1) * made.x(i, 0);
    made.y(i, 0) = family.draw(eta, 1, Shape(-2, 1.5), [&] { return random.uniform(); });
    made.response_groups.push_back(i / design.group);
  }
  made.feature_groups = made.response_groups;
  made.order = RowOrder::unrelated;
  return completed(made);
}

const std::vector<Design> designs{{FamilyKind::binomial, 60, 6}, {FamilyKind::poisson, 40, 4},
                                  {FamilyKind::poisson, 40, 40}, {FamilyKind::binomial, 60, 20},
                                  {FamilyKind::gamma, 50, 50},   {FamilyKind::gamma, 40, 5, true},
                                  {FamilyKind::student, 40, 4},  {FamilyKind::negative_binomial, 40, 4, true},
                                  {FamilyKind::gaussian, 40, 4}};

TEST(FamilyLinks, gradient_matches_finite_differences) {
  for (const Design& design : designs) {
    const Vector w = design.x ? Vector(Eigen::Vector4d(0.5, 0.3, 0.6, -0.4)) : Vector(Eigen::Vector3d(0.5, 0.6, -0.4));
    const Problem problem = shuffled(design, w, 3);
    const auto bound = Linear{}.bound_to(problem);
    const Family& family = family_of(design.kind);
    EvaluatorOptions plan;
    plan.tolerance = plan.accuracy = 1e-11;
    FamilyLinks links(problem, *bound, family, plan);
    Vector theta(links.parameters());
    theta << w * 0.8, Vector::Constant(family.shapes(), -0.6);
    const Sample here = links.at(theta, true);
    const bool by_plan = links.sums().by_plan > 0;
    const Matrix curvature = links.curvature(theta);
    for (Index k = 0; k < theta.size(); ++k) {
      constexpr double step = 1e-4;
      Vector above = theta, below = theta;
      above(k) += step;
      below(k) -= step;
      const Sample right = links.at(above, false), left = links.at(below, false);
      const double scale = 1 + here.gradient.cwiseAbs().maxCoeff();
      EXPECT_NEAR(here.gradient(k), (right.value - left.value) / (2 * step), 2e-5 * scale)
          << family.name() << design.group << " " << k;
      const Vector second = (right.gradient - left.gradient) / (2 * step);
      const double size = 1 + curvature.cwiseAbs().maxCoeff();
      EXPECT_LT((curvature.col(k) - second).cwiseAbs().maxCoeff(), (by_plan ? 2e-3 : 1e-4) * size)
          << family.name() << design.group << " " << k;
    }
  }
}

TEST(FamilyLinks, sorted_plan_is_the_dense_one_of_the_true_cost) {
  for (const FamilyKind kind : {FamilyKind::poisson, FamilyKind::gamma}) {
    const Family& family = family_of(kind);
    const Vector w = Eigen::Vector3d(0.5, 0.6, -0.4);
    const Problem problem = shuffled({kind, 50, 50}, w, 7);
    const auto bound = Linear{}.bound_to(problem);
    EvaluatorOptions plan;
    plan.tolerance = plan.accuracy = 1e-11;
    FamilyLinks links(problem, *bound, family, plan);
    ASSERT_EQ(links.sums().by_plan, 1);
    Vector theta(links.parameters());
    theta << w, Vector::Constant(family.shapes(), -0.7);
    Shape shape = Shape::Zero();
    shape.head(family.shapes()) = theta.tail(family.shapes());
    Matrix design(50, 3);
    design << Vector::Ones(50), problem.z;
    const Vector eta = design * w;
    Matrix cost(50, 50), slope(50, 50);
    for (Index i = 0; i < 50; ++i) {
      for (Index j = 0; j < 50; ++j) {
        const LogDensity pair = family.log_density({problem.y(i, 0), eta(j)}, shape);
        cost(i, j) = -pair.value;
        slope(i, j) = -pair.gradient(0);
      }
    }
    cost.array() -= cost.minCoeff();
    transport::SolverOptions dense;
    dense.epsilon = 1;
    dense.relative = false;
    dense.tolerance = 1e-12;
    const Matrix links_of_cost = 50 * transport::solve(cost, dense).plan();
    const Vector expected = design.transpose() * links_of_cost.cwiseProduct(slope).colwise().sum().transpose();
    EXPECT_LT((links.at(theta, false).gradient.head(3) - expected).norm(), 1e-6 * (1 + expected.norm()))
        << family.name();
  }
}

TEST(MarginalMisfit, is_chance_for_the_right_coefficients_and_none_for_wrong_ones) {
  const Vector w = Eigen::Vector3d(0.4, 0.6, -0.8), wrong = Eigen::Vector3d(0.6, 0.1, -0.3);
  for (const FamilyKind kind : {FamilyKind::poisson, FamilyKind::gamma, FamilyKind::negative_binomial}) {
    const Family& family = family_of(kind);
    int alarms = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Problem problem = shuffled({kind, 3000, 3000}, w, seed);
      const auto misfit = [&](const Vector& at) {
        const Vector eta = (problem.z * at.tail(2)).array() + at(0);
        return marginal_misfit(family, Shape(-2, 1.5), problem.y.col(0), eta);
      };
      alarms += misfit(w) > 1 ? 1 : 0;
      EXPECT_GT(misfit(wrong), 1) << family.name() << " " << seed;
    }
    EXPECT_EQ(alarms, 0) << family.name();
  }
}

TEST(FamilyLinks, groups_recover_coefficients) {
  const std::vector<Design> recovered{{FamilyKind::poisson, 1200, 6},
                                      {FamilyKind::poisson, 1200, 6, true},
                                      {FamilyKind::binomial, 2400, 6},
                                      {FamilyKind::gamma, 1200, 5}};
  for (const Design& design : recovered) {
    const Vector w = design.x ? Vector(Eigen::Vector4d(0.4, 0.5, 0.6, -0.8)) : Vector(Eigen::Vector3d(0.4, 0.6, -0.8));
    const Problem problem = shuffled(design, w, 21);
    const Fitted fitted = fit(problem, Linear{}, Entropic{.family = {design.kind}});
    const Result& found = fitted.result();
    EXPECT_EQ(found.status, Status::converged) << found.message;
    EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
    const Vector off = (fitted.parameters() - w).cwiseAbs();
    EXPECT_LT((off.array() / found.std_errors().array()).maxCoeff(), 4) << name_of(design.kind) << design.x;
    EXPECT_LT(off.maxCoeff(), 0.3) << name_of(design.kind) << design.x;
    EXPECT_EQ(name_of(fitted.context().law.family), std::string(name_of(design.kind)));
  }
}

TEST(FamilyLinks, binary_responses_without_groups_are_refused) {
  Problem problem = shuffled({FamilyKind::binomial, 400, 400}, Eigen::Vector3d(0.4, 1, -0.8), 2);
  const Fitted fitted = fit(problem, Linear{}, Entropic{.family = {FamilyKind::binomial}});
  EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::not_identifiable);
  EXPECT_NE(fitted.result().identifiable.reason.find("only the intercept"), std::string::npos);
  EXPECT_EQ(fitted.result().covariance.size(), 0);
}

TEST(FamilyLinks, signs_of_symmetric_features_are_not_believed) {
  RandomStream random(6, 0);
  constexpr Index n = 302;  // no multiple of 7
  Problem problem;
  problem.z = Matrix::NullaryExpr(n, 2, [&] { return random.normal(); });
  problem.z.col(1) = problem.z.col(1).array().exp();  // not symmetric
  problem.y.resize(n, 1);
  for (Index i = 0; i < n; ++i) {
    const double eta = 2 + 0.5 * problem.z(i, 0) + 0.3 * problem.z(i, 1);
    problem.y((7 * i) % n, 0) =
        family_of(FamilyKind::poisson).draw(eta, 1, Shape::Zero(), [&] { return random.uniform(); });
  }
  problem.order = RowOrder::unrelated;
  const Fitted fitted = fit(problem, Linear{}, Entropic{.starts = {.starts = 2}, .family = {FamilyKind::poisson}});
  EXPECT_NE(fitted.result().identifiable.verdict, Verdict::identified);
  EXPECT_NE(fitted.result().identifiable.reason.find("sign of z1"), std::string::npos)
      << fitted.result().identifiable.reason;
}

TEST(FamilyLinks, what_cannot_be_summed_is_said) {
  const auto complain = [](const Problem& problem, FamilyKind kind) {
    return complaint<InvalidInput>([&] { (void)fit(problem, Linear{}, Entropic{.family = {kind}}); });
  };
  const Vector w = Eigen::Vector3d(0.4, 1, -0.8);
  const Problem large = shuffled({FamilyKind::negative_binomial, 60, 30}, w, 2);
  EXPECT_NE(complain(large, FamilyKind::negative_binomial).find("30 rows in one group"), std::string::npos);
  Problem fewer = shuffled({FamilyKind::poisson, 60, 30}, w, 2);
  fewer.y = fewer.y.topRows(55).eval();
  fewer.x.resize(55, 0);
  fewer.response_weights.resize(0);
  fewer.response_groups.resize(55);
  EXPECT_NE(complain(fewer, FamilyKind::poisson).find("25 responses and 30 features"), std::string::npos);
  Problem weighted = shuffled({FamilyKind::poisson, 60, 6}, w, 2);
  weighted.response_weights(0) *= 2;
  EXPECT_NE(complain(weighted, FamilyKind::poisson).find("weights"), std::string::npos);
}

}  // namespace
}  // namespace unshuffle
