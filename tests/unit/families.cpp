// Response laws: derivatives, distributions, regression on known links, mixtures of right and wrong links.
#include "unshuffle/families/family.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "estimators/unlinked.hpp"
#include "likelihood/family_mixture.hpp"
#include "support/complaint.hpp"
#include "support/stored_answers.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {
namespace {

const nlohmann::json& oracle() {
  static const nlohmann::json parsed = stored_answers("families.json");
  return parsed;
}

/// Those with a distribution; Cox regression has none without its baseline (survival.cpp).
std::vector<const Family*> all_families() {
  std::vector<const Family*> all;
  for (const auto& [word, kind] : family_words)
    if (kind != FamilyKind::cox) all.push_back(&family_of(kind));
  return all;
}

/// An observation that every family allows.
constexpr Observation some{3, 0.7, 7};
const Shape some_shape(-0.4, 1.2);

TEST(Families, derivatives_match_finite_differences) {
  constexpr double step = 1e-5;
  for (const Family* family : all_families()) {
    const LogDensity here = family->log_density(some, some_shape);
    for (Index k = 0; k < 1 + family->shapes(); ++k) {
      const auto moved = [&](double by) {
        Observation at = some;
        Shape shape = some_shape;
        (k == 0 ? at.eta : shape(k - 1)) += by;
        return family->log_density(at, shape);
      };
      const LogDensity above = moved(step), below = moved(-step);
      EXPECT_NEAR(here.gradient(k), (above.value - below.value) / (2 * step), 1e-8) << family->name() << k;
      const Eigen::Vector3d second = (above.gradient - below.gradient) / (2 * step);
      for (Index l = 0; l < 1 + family->shapes(); ++l)
        EXPECT_NEAR(here.hessian(l, k), second(l), 1e-7) << family->name() << k << l;
    }
  }
}

TEST(Families, canonical_points_are_the_log_density) {
  // A difference in y shows θ/φ, and θ' = b'(θ)-free derivatives follow by differences.
  constexpr double step = 1e-6;
  for (const Family* family : all_families()) {
    if (!family->canonical()) continue;
    const double phi = family->shapes() > 0 ? std::exp(some_shape(0)) : 1;
    for (const double eta : {-0.8, 0.3}) {
      const auto log_ratio = [&](double y) {  // c(y, φ) cancels
        return family->log_density({y, eta, 7}, some_shape).value - family->log_density({y, 0.1, 7}, some_shape).value;
      };
      const CanonicalPoint here = family->canonical_point(eta), there = family->canonical_point(0.1);
      EXPECT_NEAR(log_ratio(4) - log_ratio(2), 2 * (here.theta - there.theta) / phi, 1e-10) << family->name();
      const double trials = family->kind() == FamilyKind::binomial ? 7 : 1;
      EXPECT_NEAR(log_ratio(2), (2 * (here.theta - there.theta) - trials * (here.cumulant - there.cumulant)) / phi,
                  1e-10);
      const CanonicalPoint above = family->canonical_point(eta + step), below = family->canonical_point(eta - step);
      EXPECT_NEAR(here.theta_slope, (above.theta - below.theta) / (2 * step), 1e-8);
      EXPECT_NEAR(here.theta_bend, (above.theta_slope - below.theta_slope) / (2 * step), 1e-8);
      // b'(θ) is the mean.
      EXPECT_NEAR(family->mean(eta), (above.cumulant - below.cumulant) / (above.theta - below.theta), 1e-8);
    }
  }
}

TEST(Families, distribution_is_the_integral_of_the_density) {
  for (const Family* family : all_families()) {
    const double low = family->whole_numbers() ? -1 : 1.2, high = 4, width = family->whole_numbers() ? 1 : 1e-3;
    double sum = 0;
    for (double y = low + (family->whole_numbers() ? 1 : width / 2); y < high + 1e-9; y += width)
      sum += width * std::exp(family->log_density({y, 0.7, 7}, some_shape).value);
    const auto up_to = [&](double y) { return family->cumulative({y, 0.7, 7}, some_shape); };
    EXPECT_NEAR(sum, up_to(high) - up_to(low), 1e-6) << family->name();
  }
}

TEST(Families, quantiles_and_draws_follow_the_distribution) {
  RandomStream random(7, 0);
  for (const Family* family : all_families()) {
    for (const double share : {0.03, 0.5, 0.98}) {
      const double y = family->quantile(share, 0.7, 7, some_shape);
      EXPECT_GE(family->cumulative({y, 0.7, 7}, some_shape), share - 1e-9) << family->name();
      const double below = family->whole_numbers() ? y - 1 : y - 1e-6;
      EXPECT_LT(family->cumulative({below, 0.7, 7}, some_shape), share) << family->name();
    }
    constexpr int draws = 20'000;
    double sum = 0;
    for (int k = 0; k < draws; ++k) sum += family->draw(0.7, 7, some_shape, [&] { return random.uniform(); });
    const double trials = family->kind() == FamilyKind::binomial ? 7 : 1;
    const double spread = std::sqrt(family->variance(0.7, trials, some_shape) / draws);
    EXPECT_NEAR(sum / draws, trials * family->mean(0.7), 5 * spread) << family->name();
  }
}

TEST(Families, information_is_the_mean_of_minus_the_second_derivative) {
  RandomStream random(8, 0);
  for (const Family* family : all_families()) {
    constexpr int draws = 40'000;
    double sum = 0, squares = 0;
    for (int k = 0; k < draws; ++k) {
      const double y = family->draw(0.7, 7, some_shape, [&] { return random.uniform(); });
      const double one = -family->log_density({y, 0.7, 7}, some_shape).hessian(0, 0);
      sum += one;
      squares += one * one;
    }
    const double mean = sum / draws, error = std::sqrt(std::max(0.0, squares / draws - mean * mean) / draws);
    EXPECT_NEAR(mean, family->information({0, 0.7, 7}, some_shape), 5 * error + 1e-9) << family->name();
  }
}

Problem problem_of(const nlohmann::json& fit, const nlohmann::json& all) {
  Problem problem{.y = vector_of(fit.at("y")), .z = matrix_of(all.at("z"))};
  if (fit.contains("offset")) problem.facts.feature_offset = vector_of(all.at("offset"));
  if (fit.contains("trials")) problem.facts.trials = vector_of(all.at("trials"));
  return problem;
}

FamilyKind kind_named(const std::string& name) {
  for (const auto& [word, kind] : family_words)
    if (name.rfind(word, 0) == 0) return kind;
  return FamilyKind::gaussian;
}

TEST(Families, regression_on_known_links_equals_statsmodels) {
  for (const auto& [name, expected] : oracle().at("fits").items()) {
    const FamilyKind kind = kind_named(name);
    const Fitted fitted = fit(problem_of(expected, oracle()), Linear{}, Ls{.family = {kind}});
    EXPECT_EQ(fitted.result().status, Status::converged) << name << fitted.result().message;
    const Vector coefficients = vector_of(expected.at("coefficients")), errors = vector_of(expected.at("std_errors"));
    // Student's oracle has a Hessian by differences.
    const double close = kind == FamilyKind::student ? 1e-4 : 1e-6;
    EXPECT_LT((fitted.parameters() - coefficients).cwiseAbs().maxCoeff(), close) << name;
    EXPECT_LT((fitted.result().std_errors() - errors).cwiseAbs().maxCoeff(), close) << name;
    const FittedLaw& law = fitted.context().law;
    const Vector shape = vector_of(expected.at("shape"));
    ASSERT_EQ(Index(law.shape.size()), shape.size()) << name;
    for (std::size_t k = 0; k < law.shape.size(); ++k)
      EXPECT_NEAR(law.shape[k].value, shape(Index(k)), close * (1 + 10 * shape(Index(k)))) << name;
    if (!expected.at("deviance").is_null()) {
      EXPECT_NEAR(law.deviance, expected.at("deviance").get<double>(), 1e-6) << name;
    }
    if (kind != FamilyKind::gamma) {  // statsmodels takes Pearson's dispersion for the likelihood, too
      EXPECT_NEAR(law.log_likelihood, expected.at("log_likelihood").get<double>(), 1e-6) << name;
    }
  }
}

TEST(Families, weights_count_as_repeated_rows) {
  const auto& stored = oracle().at("fits").at("negative-binomial");
  Problem weighted = problem_of(stored, oracle());
  weighted.response_weights = Vector::Ones(weighted.responses());
  weighted.response_weights.head(10).setConstant(2);
  Problem repeated = problem_of(stored, oracle());
  const Index n = repeated.responses();
  repeated.y.conservativeResize(n + 10, 1);
  repeated.z.conservativeResize(n + 10, Eigen::NoChange);
  repeated.y.bottomRows(10) = repeated.y.topRows(10).eval();
  repeated.z.bottomRows(10) = repeated.z.topRows(10).eval();
  const Ls ls{.family = {FamilyKind::negative_binomial}};
  const Fitted one = fit(weighted, Linear{}, ls), other = fit(repeated, Linear{}, ls);
  EXPECT_LT((one.parameters() - other.parameters()).norm(), 1e-7);
}

TEST(Families, responses_that_are_not_of_the_family_are_named) {
  Problem problem{.y = Vector::LinSpaced(30, 0, 29), .z = Vector::LinSpaced(30, 0, 1)};
  const auto complain = [&](FamilyKind kind) {
    return complaint<BadData>([&] { (void)fit(problem, Linear{}, Ls{.family = {kind}}); });
  };
  EXPECT_NE(complain(FamilyKind::binomial).find("row 3: column \"y\" is 2"), std::string::npos);
  EXPECT_NE(complain(FamilyKind::gamma).find("row 1: column \"y\" is 0"), std::string::npos);
  problem.y(4, 0) = 0.5;
  EXPECT_NE(complain(FamilyKind::poisson).find("row 5"), std::string::npos);
  problem.facts.feature_offset = Vector::Zero(30);
  EXPECT_NE(complaint<InvalidInput>([&] { (void)fit(problem, Linear{}, Ls{}); }).find("offset"), std::string::npos);
}

TEST(Families, separated_responses_are_told) {
  Problem problem{.y = Vector::Zero(40), .z = Vector::LinSpaced(40, -1, 1)};
  problem.y.bottomRows(20).setOnes();
  const Fitted fitted = fit(problem, Linear{}, Ls{.family = {FamilyKind::binomial}});
  EXPECT_EQ(fitted.result().status, Status::outer_not_converged);
  EXPECT_NE(fitted.result().message.find("without bound"), std::string::npos);
}

TEST(Families, plain_responses_suggest_a_family) {
  RandomStream random(3, 0);
  const auto values = [&](auto draw) { return Vector(Vector::NullaryExpr(200, [&] { return draw(); })); };
  EXPECT_EQ(family_suggested_by(values([&] { return double(random.below(2)); })), FamilyKind::binomial);
  EXPECT_EQ(family_suggested_by(values([&] { return double(random.below(9)); })), FamilyKind::poisson);
  EXPECT_EQ(family_suggested_by(values([&] { return double(1950 + random.below(60)); })), FamilyKind::gaussian);
  EXPECT_EQ(family_suggested_by(values([&] { return random.normal(); })), FamilyKind::gaussian);
}

/// Rows of a Poisson or other regression, a share of them linked wrongly.
struct Sample {
  Problem problem;
  std::vector<bool> right;
};

Sample wrongly_linked(const Family& family, const Vector& w, Index n, double share, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Sample made{{.y = Matrix(n, 1), .z = Matrix(n, w.size() - 1)}, std::vector<bool>(std::size_t(n), true)};
  for (double& value : made.problem.z.reshaped()) value = random.normal();
  const Vector eta = (made.problem.z * w.tail(w.size() - 1)).array() + w(0);
  for (Index i = 0; i < n; ++i)
    made.problem.y(i, 0) = family.draw(eta(i), 1, Shape(-1.5, 1.5), [&] { return random.uniform(); });
  const auto wrong = Index(share * double(n));
  const Vector moved = made.problem.y.col(0).head(wrong);
  for (Index i = 0; i < wrong; ++i) {
    made.problem.y(i, 0) = moved((i + 1) % wrong);
    made.right[std::size_t(i)] = false;
  }
  made.problem.order = RowOrder::probably_linked;
  return made;
}

TEST(Families, predictions_hold_their_share_of_new_responses) {
  const Vector w = Eigen::Vector3d(0.8, 0.6, -0.4);
  for (const FamilyKind kind :
       {FamilyKind::poisson, FamilyKind::gamma, FamilyKind::negative_binomial, FamilyKind::student}) {
    const Family& family = family_of(kind);
    const Sample train = wrongly_linked(family, w, 400, 0, 11), test = wrongly_linked(family, w, 2000, 0, 12);
    const Fitted fitted = fit(train.problem, Linear{}, Ls{.family = {kind}});
    const auto [low, high] = fitted.predict_interval(Matrix(2000, 0), test.problem.z, 0.9);
    const double held =
        (test.problem.y.array() >= low.array() && test.problem.y.array() <= high.array()).cast<double>().mean();
    EXPECT_GT(held, 0.87) << family.name();
    // Whole numbers cannot be cut at 90 %.
    EXPECT_LT(held, family.whole_numbers() ? 0.985 : 0.93) << family.name();
    const Vector mean = fitted.predict(Matrix(2000, 0), test.problem.z);
    const Fitted loaded = Fitted::from_json(fitted.to_json(), "fit.json");
    EXPECT_LT((loaded.predict(Matrix(2000, 0), test.problem.z) - mean).norm(), 1e-9 * mean.norm());
    const auto again = loaded.predict_interval(Matrix(2000, 0), test.problem.z, 0.9);
    EXPECT_LT((again.low - low).cwiseAbs().maxCoeff() + (again.high - high).cwiseAbs().maxCoeff(), 1e-6);
  }
}

TEST(FamilyMixture, equals_a_general_optimiser) {
  const auto& expected = oracle().at("mixture");
  const Problem problem = completed({.y = vector_of(expected.at("y")), .z = matrix_of(expected.at("z"))});
  const auto bound = Linear{}.bound_to(problem);
  const Links links = links_in_order(problem);
  const FamilyRows rows = family_rows(problem, *bound, links, candidates_of(problem, *bound, links));
  const FamilyMixtureFit found =
      fit_family_mixture(family_of(FamilyKind::poisson), rows, link_odds(problem.facts, links), 0);
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.log_likelihood, expected.at("log_likelihood").get<double>(), 1e-7);
  EXPECT_LT((found.parameters - vector_of(expected.at("coefficients"))).norm(), 1e-5);
  EXPECT_NEAR(found.odds(0), expected.at("logit").get<double>(), 1e-4);
  EXPECT_LT((found.link_probability - vector_of(expected.at("link_probability"))).cwiseAbs().maxCoeff(), 1e-5);
  const Vector errors = found.model_covariance.diagonal().cwiseSqrt();
  EXPECT_LT((errors.head(3) - vector_of(expected.at("std_errors"))).cwiseAbs().maxCoeff(), 1e-4);
  EXPECT_NEAR(errors(3), expected.at("logit_error").get<double>(), 1e-3);
  EXPECT_LT((found.covariance.diagonal().cwiseSqrt() - errors.head(3)).cwiseAbs().maxCoeff(), 0.2 * errors(0));
}

TEST(FamilyMixture, undoes_wrong_links_of_every_family) {
  const Vector w = Eigen::Vector3d(0.5, 1.0, -0.7);
  for (const Family* family : all_families()) {
    if (family->kind() == FamilyKind::gaussian) continue;
    const Sample sample = wrongly_linked(*family, w, 3000, 0.3, 21);
    const Fitted naive = fit(sample.problem, Linear{}, Ls{.family = {family->kind()}});
    const Fitted fitted = fit(sample.problem, Linear{}, Mixture{.family = {family->kind()}});
    EXPECT_EQ(fitted.result().status, Status::converged) << family->name();
    const bool binary = family->kind() == FamilyKind::binomial;
    EXPECT_EQ(fitted.result().identifiable.verdict, binary ? Verdict::weakly_identified : Verdict::identified)
        << family->name() << fitted.result().identifiable.reason;
    const Vector off = (fitted.parameters() - w).cwiseAbs();
    EXPECT_LT((off.array() / fitted.result().std_errors().array()).maxCoeff(), 4) << family->name();
    EXPECT_LT(off.norm(), 0.4 * (naive.parameters() - w).norm()) << family->name();
    // Known right links must not be called wrong more often than the probabilities say.
    double right = 0, said = 0;
    for (std::size_t i = 0; i < sample.right.size(); ++i) right += sample.right[i] ? 1 : 0;
    said = fitted.link_probabilities().sum();
    EXPECT_NEAR(said / 3000, right / 3000, 0.06) << family->name();
  }
}

TEST(FamilyMixture, a_stated_rate_makes_up_for_binary_responses_that_tell_little) {
  Sample sample = wrongly_linked(family_of(FamilyKind::binomial), Eigen::Vector3d(0.5, 1.0, -0.7), 3000, 0.3, 21);
  sample.problem.facts.wrong_rate = Vector::Constant(3000, 0.3);
  const Fitted fitted = fit(sample.problem, Linear{}, Mixture{.family = {FamilyKind::binomial}});
  EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::identified) << fitted.result().identifiable.reason;
}

TEST(FamilyMixture, order_without_information_is_refused) {
  for (const FamilyKind kind : {FamilyKind::poisson, FamilyKind::gamma, FamilyKind::binomial,
                                FamilyKind::negative_binomial, FamilyKind::student}) {
    const Sample sample = wrongly_linked(family_of(kind), Eigen::Vector3d(0.5, 1.0, -0.7), 600, 1, 5);
    const Fitted fitted = fit(sample.problem, Linear{}, Mixture{.family = {kind}});
    EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::not_identifiable) << family_of(kind).name();
  }
}

/// Wrong links are likelier where a column is large.
Sample linked_by_score(Index n, std::uint64_t seed, Vector& score) {
  RandomStream random(seed, 1);
  Sample made = wrongly_linked(family_of(FamilyKind::gaussian), Eigen::Vector3d(1, 2, -1), n, 0, seed);
  score = Vector::NullaryExpr(n, [&] { return random.normal(); });
  std::vector<Index> wrong;
  for (Index i = 0; i < n; ++i) {
    made.right[std::size_t(i)] = random.uniform() > 1 / (1 + std::exp(1.5 - 1.2 * score(i)));
    if (!made.right[std::size_t(i)]) wrong.push_back(i);
  }
  const Matrix y = made.problem.y;
  for (std::size_t k = 0; k < wrong.size(); ++k) made.problem.y(wrong[k], 0) = y(wrong[(k + 1) % wrong.size()], 0);
  return made;
}

double estimate_named(const std::vector<NamedEstimate>& all, const std::string& name, bool error = false) {
  for (const NamedEstimate& one : all)
    if (one.name == name) return error ? one.std_error : one.value;
  return std::nan("");
}

TEST(FamilyMixture, mismatch_columns_are_fitted) {
  Vector score;
  Sample sample = linked_by_score(4000, 3, score);
  sample.problem.facts.mismatch = score;
  sample.problem.facts.mismatch_names = {"score"};
  const Fitted fitted = fit(sample.problem, Linear{}, Mixture{});
  const auto& odds = fitted.context().law.mismatch;
  EXPECT_NEAR(estimate_named(odds, "constant"), 1.5, 4 * estimate_named(odds, "constant", true));
  EXPECT_NEAR(estimate_named(odds, "score"), -1.2, 4 * estimate_named(odds, "score", true));
  EXPECT_LT(estimate_named(odds, "score", true), 0.2);
  EXPECT_LT((fitted.parameters() - Eigen::Vector3d(1, 2, -1)).cwiseAbs().maxCoeff(), 0.05);
}

TEST(FamilyMixture, a_rate_known_exactly_is_kept_and_an_audited_one_is_corrected) {
  const Sample sample = wrongly_linked(family_of(FamilyKind::poisson), Eigen::Vector3d(0.5, 1.0, -0.7), 2000, 0.3, 9);
  Problem problem = sample.problem;
  const Mixture mixture{.family = {FamilyKind::poisson}};
  const Fitted free = fit(problem, Linear{}, mixture);
  problem.facts.wrong_rate = Vector::Constant(2000, 0.3);
  const Fitted exact = fit(problem, Linear{}, mixture);
  EXPECT_TRUE(exact.context().law.mismatch.empty());
  EXPECT_LT(exact.result().std_errors()(1), free.result().std_errors()(1) * 1.001);
  // A large audit is as good as an exact rate, a tiny one as none.
  problem.facts.audit = 1e9;
  EXPECT_LT((fit(problem, Linear{}, mixture).parameters() - exact.parameters()).norm(), 1e-4);
  problem.facts.audit = 1e-6;
  EXPECT_LT((fit(problem, Linear{}, mixture).parameters() - free.parameters()).norm(), 1e-4);
}

TEST(FamilyMixture, what_is_known_of_links_is_not_dropped) {
  Sample sample = wrongly_linked(family_of(FamilyKind::gaussian), Eigen::Vector3d(1, 2, -1), 100, 0.1, 4);
  sample.problem.facts.wrong_rate = Vector::Constant(100, 0.1);
  for (const Estimator& estimator : {Estimator(Ls{}), Estimator(Entropic{})}) {
    EXPECT_NE(complaint<InvalidInput>([&] { (void)fit(sample.problem, Linear{}, estimator); }).find("mixture"),
              std::string::npos);
  }
  const Vector at_a_tenth = fit(sample.problem, Linear{}, Adjusted{}).parameters();
  sample.problem.facts.wrong_rate = Vector::Constant(100, 0.3);
  EXPECT_GT((fit(sample.problem, Linear{}, Adjusted{}).parameters() - at_a_tenth).norm(), 0.01);
}

}  // namespace
}  // namespace unshuffle
