// The likelihood over all links, the starts that lead to its optima, the mixture of right and wrong links, and
// verdicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>

#include "core/normal.hpp"
#include "core/random.hpp"
#include "likelihood/calibration.hpp"
#include "likelihood/kernel_density.hpp"
#include "likelihood/likelihood.hpp"
#include "likelihood/mixture.hpp"
#include "likelihood/mixture_sums.hpp"
#include "likelihood/profile.hpp"
#include "likelihood/response_law.hpp"
#include "likelihood/search.hpp"
#include "links/link_posterior.hpp"
#include "starts/moments.hpp"
#include "support/fits.hpp"
#include "support/test_data.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spline.hpp"
#include "unshuffle/tables/simulate.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {
namespace {

Simulation gamma_sample(Index rows, Index columns, double shape, std::uint64_t seed) {
  SimulateOptions options;
  options.design = Design::gamma;
  options.rows = rows;
  options.dim_z = columns;
  options.shape = shape;
  options.seed = seed;
  return simulate(options);
}

Simulation sensing_sample(Index rows, double shuffle, std::uint64_t seed) {
  SimulateOptions options;
  options.rows = rows;
  options.shuffle = shuffle;
  options.mean = 1;
  options.snr = 100;
  options.seed = seed;
  return simulate(options);
}

double test_error(const Simulation& sample, const Result& fit) {
  const auto bound = Linear{}.bound_to(sample.problem);
  const Vector y = sample.test.y.col(0);
  const Vector rest = y - predict_linked(*bound, sample.test.x, sample.test.z, fit.parameters).col(0);
  return rest.squaredNorm() / (y.array() - y.mean()).matrix().squaredNorm();
}

/// Sum over all permutations of the product of entries, by dynamic programming over sets of columns.
double permanent(const Matrix& entries) {
  const auto n = static_cast<std::size_t>(entries.rows());
  std::vector<double> sums(std::size_t{1} << n, 0.0);
  sums[0] = 1;
  for (std::size_t set = 0; set < sums.size(); ++set) {
    const int row = std::popcount(set);
    for (std::size_t column = 0; column < n && row < int(n); ++column) {
      const std::size_t bit = std::size_t{1} << column;
      if ((set & bit) == 0) sums[set | bit] += sums[set] * entries(row, Index(column));
    }
  }
  return sums.back();
}

Vector theta_of(const Vector& w, double epsilon) {
  Vector theta(w.size() + 1);
  theta << w, std::log(epsilon);
  return theta;
}

// With fewer responses than features the missing ones could be anything; with more, those without a partner have a law
// of their own, or belong to unseen features that are like the seen.
double minus_log_density(const Problem& problem, double w, double variance) {
  const ResponseLaw law(problem.y);
  const bool own_law = problem.x.cols() == 0;
  const Index n = problem.responses(), m = problem.features(), all = std::max(n, m);
  Matrix densities = Matrix::Ones(all, all);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      const double r = problem.y(i, 0) - w * problem.z(j, 0);
      densities(i, j) = std::exp(-0.5 * r * r / variance) / std::sqrt(2 * std::numbers::pi * variance);
    }
    const double unlinked = own_law ? std::exp(law.log_density(problem.y.row(i))) : densities.row(i).head(m).mean();
    densities.row(i).tail(all - m).setConstant(unlinked);
  }
  return std::lgamma(double(all) + 1) - std::log(permanent(densities));
}

TEST(LinkLikelihood, is_near_the_sum_over_all_links) {
  RandomStream random(3, 0);
  for (const auto [n, m] : {std::array<Index, 2>{12, 12}, {12, 13}, {8, 14}, {13, 12}, {14, 8}, {14, 3}}) {
    Problem problem;
    problem.y = Matrix::NullaryExpr(n, 1, [&] { return random.normal(); });
    problem.z = Matrix::NullaryExpr(m, 1, [&] { return random.normal(); });
    for (const bool with_x : {false, true}) {
      problem.x = with_x ? Matrix(Matrix::Random(n, 1)) : Matrix();
      const Problem whole = completed(problem);
      const auto bound = Linear(false).bound_to(whole);
      for (const Backend backend : {Backend::sorted, Backend::dense}) {
        if (with_x && backend == Backend::dense) continue;
        LikelihoodOptions options;
        options.evaluator.backend = backend;
        LinkLikelihood likelihood(whole, *bound, options);
        Vector w = Vector::Zero(bound->parameters());
        w.tail(1).setConstant(0.8);
        for (const double variance : {0.2, 0.5, 2.0}) {
          const double value = likelihood.at(theta_of(w, 2 * variance), false).value;
          EXPECT_NEAR(value, minus_log_density(whole, 0.8, variance), 0.6) << n << " " << m << " " << variance;
        }
      }
    }
  }
}

class LikelihoodOfLengths : public ::testing::TestWithParam<std::array<Index, 2>> {};

INSTANTIATE_TEST_SUITE_P(Lengths, LikelihoodOfLengths,
                         ::testing::Values(std::array<Index, 2>{300, 300}, std::array<Index, 2>{200, 300},
                                           std::array<Index, 2>{300, 200}));

TEST_P(LikelihoodOfLengths, derivatives_agree_with_differences) {
  const Simulation sample = sensing_sample(300, 1, 4);
  Problem part = sample.problem;
  part.y = Matrix(part.y.topRows(GetParam()[0]));
  part.z = Matrix(part.z.topRows(GetParam()[1]));
  part.response_weights = part.feature_weights = {};
  const Problem problem = completed(part);
  const auto bound = Linear{}.bound_to(problem);
  LikelihoodOptions options;
  options.evaluator.tolerance = 1e-12;
  LinkLikelihood likelihood(problem, *bound, options);
  Vector w(6);
  w << 0.2, sample.coefficients;
  const Vector theta = theta_of(w, 0.3);
  const Sample here = likelihood.at(theta, true);
  const Matrix information = likelihood.information(theta);
  for (Index k = 0; k < theta.size(); ++k) {
    const double h = 3e-5;
    Vector above = theta;
    Vector below = theta;
    above(k) += h;
    below(k) -= h;
    const Sample up = likelihood.at(above, false);
    const Sample down = likelihood.at(below, false);
    EXPECT_NEAR((up.value - down.value) / (2 * h), here.gradient(k), 1e-4 * (1 + std::abs(here.gradient(k))));
    const Vector column = (up.gradient - down.gradient) / (2 * h);
    EXPECT_LT((column - information.col(k)).norm(), 1e-3 * (1 + column.norm())) << k;
  }
}

TEST(LinkLikelihood, counts_known_noise_whatever_epsilon_says) {
  const Problem problem = completed(sensing_sample(300, 1, 4).problem);
  const auto bound = Linear{}.bound_to(problem);
  LinkLikelihood estimated(problem, *bound, {});
  LinkLikelihood known(problem, *bound, {.evaluator = {}, .known_noise_sd = 0.5});
  const Vector w = Vector::Constant(6, 0.7);
  const Sample expected = estimated.at(theta_of(w, 0.5), true);
  const Sample found = known.at(theta_of(w, 3), true);
  EXPECT_NEAR(found.value, expected.value, 1e-5);
  EXPECT_EQ(found.gradient(6), 0);
  EXPECT_NEAR((found.gradient - expected.gradient).head(6).norm(), 0, 1e-6 * expected.gradient.norm());
  EXPECT_NEAR((found.hessian - expected.hessian).topLeftCorner(6, 6).norm(), 0, 1e-6 * expected.hessian.norm());
  const Optimum best = known.most_likely_near({w, 3}, 20);
  EXPECT_DOUBLE_EQ(best.epsilon, 0.5);
}

// The lowest value over a fine grid of the other coefficient, which uses nothing of the descent.
double lowest_at(LinkLikelihood& likelihood, const Optimum& best, Index k, double value, double reach) {
  double lowest = std::numeric_limits<double>::infinity();
  for (int step = -60; step <= 60; ++step) {
    Vector theta = best.theta();
    theta(k) = value;
    theta(1 - k) += reach * step / 60;
    lowest = std::min(lowest, likelihood.at(theta, false).value);
  }
  return lowest;
}

TEST(Profile, margins_end_where_the_likelihood_is_down_to_a_seventh) {
  for (const std::uint64_t seed : {2, 5}) {
    const Simulation sample = gamma_sample(2000, 2, 0, seed);
    const Problem problem = completed(sample.problem);
    const auto bound = Linear(false).bound_to(problem);
    const LikelihoodOptions options{.evaluator = {}, .known_noise_sd = std::sqrt(0.1)};
    LinkLikelihood likelihood(problem, *bound, options);
    const Optimum best = likelihood.most_likely_near({sample.coefficients, 0.2}, 60);
    const Matrix margins = profile_margins([&] { return LinkLikelihood(problem, *bound, options); }, best,
                                           Vector::Zero(best.parameters.size()));
    for (Index k = 0; k < 2; ++k) {
      for (Index side = 0; side < 2; ++side) {
        const double end = best.parameters(k) + (side == 0 ? -1 : 1) * margins(k, side);
        const double fall = lowest_at(likelihood, best, k, end, 3 * margins.row(1 - k).maxCoeff()) - best.nats;
        EXPECT_NEAR(fall, 0.5 * normal_quantile * normal_quantile, 0.15) << seed << " " << k << " " << side;
      }
    }
  }
}

TEST(Profile, intervals_of_a_fit_are_its_margins_and_otherwise_those_of_its_standard_errors) {
  Result fit;
  fit.parameters = Vector{{1, 2}};
  EXPECT_TRUE(fit.intervals().array().isNaN().all());
  fit.covariance = Vector{{0.25, 1}}.asDiagonal();
  EXPECT_DOUBLE_EQ(fit.intervals()(1, 0), 2 - normal_quantile);
  EXPECT_DOUBLE_EQ(fit.intervals()(0, 1), 1 + 0.5 * normal_quantile);
  fit.margins = Matrix{{0.1, 0.2}, {0.3, 0.4}};
  EXPECT_DOUBLE_EQ(fit.intervals()(0, 0), 0.9);
  EXPECT_DOUBLE_EQ(fit.intervals()(1, 1), 2.4);
}

TEST(LinkPosterior, agrees_with_the_sum_over_all_permutations) {
  RandomStream random(5, 0);
  const Matrix plan = Matrix::NullaryExpr(6, 6, [&] { return std::pow(random.uniform(), 3); });
  const std::vector<Index> partner{2, 0, 1, 5, 4, 3};
  const Vector found = link_posterior(plan, partner, RandomStream(1, 1));
  for (Index i = 0; i < 6; ++i) {
    Matrix with_link = plan;
    with_link.row(i).setZero();
    with_link(i, partner[std::size_t(i)]) = plan(i, partner[std::size_t(i)]);
    EXPECT_NEAR(found(i), permanent(with_link) / permanent(plan), 0.05) << i;
  }
}

TEST(MomentPolynomials, are_the_moments_of_the_combined_columns) {
  RandomStream random(1, 0);
  const Matrix sample = Matrix::NullaryExpr(700, 3, [&] { return random.normal() + random.uniform(); });
  const MomentPolynomials polynomials(sample, 6);
  Vector c(3);
  c << 0.7, -1.1, 0.4;
  Vector moments;
  Matrix slopes;
  polynomials.evaluate(c, moments, slopes);
  const Vector s = sample * c;
  for (int k = 0; k <= 6; ++k) {
    const double direct = s.array().pow(k).mean();
    EXPECT_NEAR(moments(k), direct, 1e-10 * (1 + std::abs(direct)));
    for (Index a = 0; a < 3; ++a) {
      const double slope = k == 0 ? 0 : k * (s.array().pow(k - 1) * sample.col(a).array()).mean();
      EXPECT_NEAR(slopes(k, a), slope, 1e-10 * (1 + std::abs(slope)));
    }
  }
}

TEST(MomentStarts, come_near_the_truth_without_any_link) {
  const Simulation sample = gamma_sample(50000, 4, 0, 0);
  const Problem problem = completed(sample.problem);
  const auto bound = Linear{}.bound_to(problem);
  const auto starts = moment_starts(problem, *bound, 300, 0);
  double nearest = INFINITY;
  for (std::size_t k = 0; k < std::min<std::size_t>(8, starts.size()); ++k) {
    nearest = std::min(nearest, (starts[k].parameters.tail(4) - sample.coefficients).norm());
  }
  EXPECT_LT(nearest, 0.1 * sample.coefficients.norm());
}

TEST(MomentStarts, are_not_made_for_models_that_are_not_linear) {
  const Problem problem = completed(gamma_sample(200, 2, 0, 0).problem);
  EXPECT_TRUE(moment_starts(problem, *Sine{}.bound_to(problem), 5, 0).empty());
}

TEST(Entropic, finds_fully_shuffled_coefficients_of_distinct_distributions) {
  const Simulation sample = gamma_sample(20000, 2, 0, 1);
  const Result found = fit(sample.problem, Linear{}, Entropic{}).result();
  EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
  EXPECT_LT(test_error(sample, found), 1.05 * least_squares_test_error(sample, true));
  ASSERT_EQ(found.std_errors().size(), 3);
  for (Index k = 1; k < 3; ++k) {
    EXPECT_LT(std::abs(found.parameters(k) - sample.coefficients(k - 1)), 4 * found.std_errors()(k));
  }
}

TEST(Entropic, one_start_does_not_know_of_other_solutions) {
  const Simulation sample = gamma_sample(4000, 2, 0, 1);
  Vector start = Vector::Zero(3);
  start.tail(2) = sample.coefficients;
  const Result found = fit(sample.problem, Linear{}, Entropic{.starts = starting_at(start)}).result();
  EXPECT_EQ(found.identifiable.verdict, Verdict::weakly_identified);
  EXPECT_EQ(found.identifiable.reason, "only one start was tried, so other solutions were not looked for");
}

TEST(Entropic, says_that_its_search_was_stopped) {
  const Execution stopped{.progress = [](double, double) { return false; }};
  const Result found = fit(gamma_sample(1000, 2, 0, 1).problem, Linear{}, Entropic{}, stopped).result();
  EXPECT_EQ(found.status, Status::stopped);
  EXPECT_NE(found.identifiable.verdict, Verdict::identified);
  EXPECT_EQ(found.identifiable.reason, "the search was stopped before it had looked everywhere");
}

TEST(Entropic, has_no_standard_errors_where_nothing_is_identified) {
  RandomStream random(4, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(300, 2, [&] { return random.normal(); });
  problem.y = problem.z * Vector{{1, 2}};
  for (const int bootstrap : {0, 4}) {
    const Result found = fit(problem, Linear{}, Entropic{.bootstrap = {bootstrap}}).result();
    EXPECT_EQ(found.identifiable.verdict, Verdict::not_identifiable);
    EXPECT_EQ(found.covariance.size(), 0);
    EXPECT_TRUE(found.intervals().array().isNaN().all());
    EXPECT_TRUE(found.std_error_note.starts_with("none: other coefficients explain the data as well"));
  }
}

TEST(Entropic, keeps_noise_that_is_known) {
  const Simulation sample = gamma_sample(4000, 2, 0, 1);
  const Result found = fit(sample.problem, Linear(false), Entropic{.noise = {std::sqrt(0.1)}}).result();
  EXPECT_DOUBLE_EQ(found.noise_sd, std::sqrt(0.1));
  for (Index k = 0; k < 2; ++k) {
    EXPECT_LT(std::abs(found.parameters(k) - sample.coefficients(k)), 4 * found.std_errors()(k));
  }
}

TEST(Entropic, converges_with_several_responses_and_hardly_any_noise) {
  RandomStream random(1, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(60, 2, [&] { return std::exp(random.normal()); });
  problem.y = problem.z * (Matrix(2, 2) << 2, 0.5, -1, 1).finished();
  problem.y += Matrix::NullaryExpr(60, 2, [&] { return 0.01 * random.normal(); });
  problem.y = Matrix(problem.y.colwise().reverse());  // all links lost
  const Result found = fit(ordered(problem, RowOrder::unrelated), Linear{}, Auto{}).result();
  EXPECT_EQ(found.status, Status::converged) << found.message;
  EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
  EXPECT_LT((found.parameters - (Vector(6) << 0, 2, -1, 0, 0.5, 1).finished()).norm(), 0.05);
}

TEST(Entropic, links_within_groups) {
  Simulation sample = sensing_sample(300, 1, 11);
  Problem& problem = sample.problem;
  problem.response_groups.resize(300);
  problem.feature_groups.resize(300);
  for (Index i = 0; i < 300; ++i) {
    problem.response_groups[std::size_t(i)] = i / 5;
    problem.feature_groups[std::size_t(sample.permutation[std::size_t(i)])] = i / 5;
  }
  const Result found = fit(problem, Linear{}, Entropic{}).result();
  EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
  EXPECT_LT(test_error(sample, found), 1.2 * least_squares_test_error(sample, true));
  for (Index k = 0; k < 5; ++k) {
    EXPECT_LT(std::abs(found.parameters(k + 1) - sample.coefficients(k)), 4 * found.std_errors()(k + 1));
  }
}

TEST(Entropic, estimates_what_is_known_beside_the_responses) {
  Problem problem = gamma_sample(3000, 1, 0, 3).problem;
  RandomStream random(6, 0);
  problem.x = Matrix::NullaryExpr(3000, 1, [&] { return random.normal(); });
  problem.y += 1.5 * problem.x;
  const Result found = fit(problem, Linear{}, Entropic{}).result();
  const auto place = std::find(found.names.begin(), found.names.end(), "x1") - found.names.begin();
  ASSERT_LT(place, Index(found.names.size()));
  EXPECT_NEAR(found.parameters(place), 1.5, std::min(0.1, 4 * found.std_errors()(place)));
}

TEST(Entropic, gives_the_same_answer_on_any_number_of_threads) {
  const Simulation sample = gamma_sample(1500, 2, 0, 2);
  const Fitted one = fit(sample.problem, Linear{}, Entropic{}, {.threads = 1});
  EXPECT_EQ(one.parameters(), fit(sample.problem, Linear{}, Entropic{}, {.threads = 2}).parameters());
}

TEST(Verdict, gaussian_features_fully_shuffled_are_not_identifiable) {
  SimulateOptions drawn;
  drawn.shuffle = 1;
  drawn.rows = 500;
  const Result found = fit(simulate(drawn).problem, Linear{}, Entropic{.starts = {.starts = 4}}).result();
  EXPECT_EQ(found.identifiable.verdict, Verdict::not_identifiable);
  EXPECT_NE(found.identifiable.reason.find("Gaussian"), std::string::npos) << found.identifiable.reason;
  EXPECT_FALSE(found.identifiable.advice.empty());
}

TEST(Verdict, names_the_exchange_of_features_with_one_distribution) {
  const Simulation sample = gamma_sample(4000, 2, 1, 3);
  const Result found = fit(sample.problem, Linear{}, Entropic{}).result();
  EXPECT_NE(found.identifiable.verdict, Verdict::identified);
  EXPECT_NE(found.identifiable.reason.find("exchange of z1 and z2"), std::string::npos) << found.identifiable.reason;
  EXPECT_FALSE(found.identifiable.alternatives.empty());
}

TEST(Verdict, an_optimum_found_once_must_be_further_ahead_than_many_coefficients_get_by_chance) {
  RandomStream random(5, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(60, 10, [&] { return std::exp(random.normal()); });
  problem.y = Matrix::NullaryExpr(60, 2, [&] { return random.normal(); });
  problem = completed(problem);
  const auto bound = Linear{}.bound_to(problem);
  const Index p = bound->parameters();
  SearchResult found;
  found.starts = 9;
  for (const double nats : {0.0, 29.0}) {
    FoundOptimum one;
    one.optimum = {Vector::Constant(p, nats), 0.1, {}, nats, true, 1, ""};
    found.optima.push_back(one);
  }
  Calibrated answer{found.optima.front().optimum, {}, 1e-9 * Matrix::Identity(p, p)};
  const auto verdict = [&] { return judge(found, {}, problem, *bound, answer).verdict; };
  EXPECT_EQ(verdict(), Verdict::not_identifiable);  // 22 coefficients gain 45 nats by chance
  found.optima.back().optimum.nats = 60;
  EXPECT_EQ(verdict(), Verdict::identified);
  found.optima.back().optimum.nats = 29;
  found.optima.front().hits = 2;
  EXPECT_EQ(verdict(), Verdict::identified);
  answer.misfit = 10;
  EXPECT_EQ(verdict(), Verdict::not_identifiable);
}

TEST(Misfit, is_small_for_the_model_and_large_for_responses_of_another_shape) {
  const auto misfit_of = [](Problem problem, const Vector& w) {
    problem = completed(std::move(problem));
    const auto bound = Linear{false}.bound_to(problem);
    LinkLikelihood likelihood(problem, *bound, {});
    const Optimum near = likelihood.most_likely_near({w, 0.2}, 60);
    return calibrated(problem, *bound, {}, near, 0).misfit;
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    RandomStream random(seed, 0);
    Problem problem;
    problem.z = Matrix::NullaryExpr(400, 2, [&] { return -std::log(random.uniform()); });
    const Vector w = Vector::LinSpaced(2, 1, 2);
    problem.y = problem.z * w + Matrix::NullaryExpr(400, 1, [&] { return 0.3 * random.normal(); });
    EXPECT_LT(misfit_of(problem, w), 4) << seed;
    problem.y = problem.y.array().square();
    EXPECT_GT(misfit_of(problem, w), 4) << seed;
  }
}

TEST(GaussianColumns, are_told_from_others) {
  RandomStream random(9, 0);
  Matrix z(2000, 3);
  for (Index i = 0; i < z.rows(); ++i) z.row(i) << random.normal(), -std::log(random.uniform()), random.normal();
  EXPECT_EQ(gaussian_columns(z), (std::vector<Index>{0, 2}));
}

const nlohmann::json& mixture_oracle() {
  static const nlohmann::json parsed = [] {
    std::ifstream file(test_data("mixture.json"));
    return nlohmann::json::parse(file);
  }();
  return parsed;
}

TEST(Mixture, agrees_with_a_general_optimiser) {
  const auto& oracle = mixture_oracle();
  CandidateLinks links;
  const auto y = oracle["y"].get<std::vector<double>>();
  links.rows.y = Eigen::Map<const Vector>(y.data(), Index(y.size()));
  links.rows.z.resize(Index(y.size()), 2);
  for (std::size_t i = 0; i < y.size(); ++i) {
    links.rows.z.row(Index(i)) << oracle["z"][i][0].get<double>(), oracle["z"][i][1].get<double>();
  }
  Problem problem;
  problem.y = links.rows.y;
  problem.z = links.rows.z;
  const auto bound = Linear{}.bound_to(completed(problem));
  MixtureOptions options;
  options.tolerance = 1e-13;
  options.max_iterations = 5000;
  const MixtureFit found =
      fit_mixture_from_all(*bound, links, least_squares(*bound, links.rows, Vector::Zero(3)), options);
  for (Index k = 0; k < 3; ++k) EXPECT_NEAR(found.parameters(k), oracle["parameters"][std::size_t(k)], 1e-4);
  EXPECT_NEAR(found.noise_variance, oracle["noise_variance"], 1e-4);
  EXPECT_NEAR(found.mismatch_rate, oracle["mismatch_rate"], 1e-4);
  EXPECT_NEAR(found.log_likelihood, oracle["log_likelihood"], 1e-6);
}

TEST(Mixture, a_step_stays_within_its_limits) {
  const RightLinks links{.numbers = 80, .squares = 20, .open = 50, .open_right = 30};
  const LimitedBelief free = maximised(links, {});
  EXPECT_DOUBLE_EQ(free.noise_variance, 0.25);
  EXPECT_DOUBLE_EQ(free.mismatch_rate, 0.4);
  EXPECT_FALSE(free.rate_is_limited);
  const LimitedBelief bounded =
      maximised(links, {.known_noise_variance = 2, .least_noise_variance = 1, .largest_rate = 0.3});
  EXPECT_EQ(bounded.noise_variance, 2);
  EXPECT_EQ(bounded.mismatch_rate, 0.3);
  EXPECT_TRUE(bounded.rate_is_limited);
  const LimitedBelief exact = maximised({.numbers = 50, .squares = -1e-14, .open = 50, .open_right = 50},
                                        {.least_noise_variance = 1e-12});  // squares of rounding errors
  EXPECT_EQ(exact.noise_variance, 1e-12);
  EXPECT_GT(exact.mismatch_rate, 0);
}

TEST(KernelDensity, tables_are_densities_near_the_one_that_was_drawn_from) {
  RandomStream random(4, 0);
  const Matrix values = Matrix::NullaryExpr(20000, 1, [&] { return 3 + 2 * random.normal(); });
  const TabulatedDensity table = KernelDensity(values, 1).tabulated();
  double mass = 0;
  for (double at = -10; at < 16; at += 0.01) mass += 0.01 * std::exp(table.log_at(at));
  EXPECT_NEAR(mass, 1, 1e-3);
  for (const double at : {-1.0, 1.0, 3.0, 4.0, 7.0}) {
    const double normal = -0.5 * std::log(2 * M_PI * 4) - (at - 3) * (at - 3) / 8;
    EXPECT_NEAR(table.log_at(at), normal, 0.1) << at;
  }
  EXPECT_TRUE(std::isfinite(table.log_at(1e6)));
}

TEST(KernelDensity, values_too_far_apart_for_a_table_still_have_one) {
  Matrix values = Matrix::Constant(1000, 1, 0);
  for (Index i = 0; i < 1000; ++i) values(i, 0) = i == 0 ? 1e12 : double(i % 7);
  const KernelDensity density(values, 1);
  EXPECT_TRUE(density.log_at(values).allFinite());
  EXPECT_TRUE(density.tabulated().logs.allFinite());
}

TEST(Mixture, is_as_good_as_the_oracle_when_half_of_the_links_are_wrong) {
  const Simulation sample = sensing_sample(1000, 0.5, 6);
  const Result found = fit(sample.problem, Linear{}, Mixture{}).result();
  EXPECT_LT(test_error(sample, found), 1.03 * least_squares_test_error(sample, true));
  EXPECT_EQ(found.identifiable.verdict, Verdict::identified);
  double right = 0;
  double wrong = 0;
  for (Index i = 0; i < 1000; ++i) {
    (sample.permutation[std::size_t(i)] == i ? right : wrong) += found.link_probabilities(i);
  }
  EXPECT_GT(right, 5 * wrong);
}

/// y = f(z) + N(0, 0.1²) of one feature, every third link wrong.
Problem curve(Index rows, const std::function<double(double)>& f) {
  RandomStream random(17, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(rows, 1, [&] { return 4 * random.uniform() - 2; });
  problem.y.resize(rows, 1);
  for (Index i = 0; i < rows; ++i) {
    const Index from = i % 3 == 0 ? random.below(rows) : i;
    problem.y(i, 0) = f(problem.z(from, 0)) + 0.1 * random.normal();
  }
  return problem;
}

TEST(Mixture, fits_splines_to_rows_of_which_a_third_is_linked_wrongly) {
  const Problem problem = curve(600, [](double z) { return std::sin(2 * z) + 0.3 * z; });
  const Result found = fit(problem, Spline(8), Mixture{}).result();
  EXPECT_NEAR(found.noise_sd, 0.1, 0.02);
  EXPECT_NEAR(found.link_probabilities.mean(), 2.0 / 3, 0.1);
}

TEST(Mixture, fits_sines_to_rows_of_which_a_third_is_linked_wrongly) {
  const Result found = fit(curve(600, [](double z) { return std::sin(1.3 * z); }), Sine{}, Mixture{}).result();
  EXPECT_NEAR(found.parameters(found.parameters.size() - 1), 1.3, 0.05);
  EXPECT_NEAR(found.noise_sd, 0.1, 0.02);
}

TEST(Mixture, says_so_when_the_row_order_tells_nothing) {
  SimulateOptions drawn;
  drawn.shuffle = 1;
  const Result found = fit(simulate(drawn).problem, Linear{}, Mixture{}).result();
  EXPECT_EQ(found.identifiable.verdict, Verdict::not_identifiable) << found.identifiable.reason;
}

TEST(Mixture, keeps_known_pairs_certain) {
  Simulation sample = sensing_sample(300, 0.7, 8);
  for (Index i = 0; i < 30; ++i) sample.problem.known.push_back({i, sample.permutation[std::size_t(i)]});
  const Result found = fit(sample.problem, Linear{}, Mixture{}).result();
  EXPECT_EQ(found.link_probabilities.head(30), Vector::Ones(30));
  EXPECT_LT(test_error(sample, found), 1.2 * least_squares_test_error(sample, true));
}

TEST(Mixture, keeps_noise_that_is_known) {
  const Simulation sample = sensing_sample(500, 0.5, 6);
  const Result free = fit(sample.problem, Linear{}, Mixture{}).result();
  const Result found = fit(sample.problem, Linear{}, Mixture{.noise = {1.1 * free.noise_sd}}).result();
  EXPECT_DOUBLE_EQ(found.noise_sd, 1.1 * free.noise_sd);
  EXPECT_LT((found.parameters - free.parameters).norm(), 2 * free.std_errors().norm());
  EXPECT_LT((found.std_errors() - free.std_errors()).norm(), 0.3 * free.std_errors().norm());
}

TEST(Mixture, pairs_keep_links_in_order_that_are_probably_right) {
  const Simulation sample = sensing_sample(300, 0.4, 3);
  const Fitted found = fit(sample.problem, Linear{}, Mixture{});
  const Matching matching = found.match();
  ASSERT_EQ(matching.pairs.size(), 300U);
  std::vector<char> taken(300, 0);
  int right = 0, kept = 0;
  double expected = 0;
  for (const Match& pair : matching.pairs) {
    EXPECT_EQ(taken[std::size_t(pair.feature_row)]++, 0);
    right += sample.permutation[std::size_t(pair.response_row)] == pair.feature_row;
    expected += pair.probability;
    if (pair.response_row != pair.feature_row) continue;
    EXPECT_GE(pair.probability, found.link_probabilities()(pair.response_row));
    ++kept;
  }
  EXPECT_GT(kept, 150);
  EXPECT_NEAR(right, expected, 25);  // about four standard deviations
  EXPECT_GT(right, 150);
}

TEST(Mixture, pairs_leave_out_rows_for_which_no_other_is_left) {
  RandomStream random(5, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(41, 1, [&] { return random.normal(); });
  problem.y = 1 + 2 * problem.z.array() + 0.1 * Matrix::NullaryExpr(41, 1, [&] { return random.normal(); }).array();
  problem.y(40, 0) = 50;
  Problem grouped = problem, weighted = problem;
  for (Index i = 0; i < 41; ++i) grouped.response_groups.push_back(i % 2);
  grouped.feature_groups = grouped.response_groups;
  grouped.feature_groups.back() = 1;
  weighted.response_weights = Vector::Ones(41);
  weighted.response_weights(40) = 0;
  for (const Problem& tested : {grouped, weighted}) {
    const Matching matching = fit(tested, Linear{}, Mixture{}).match();
    EXPECT_EQ(matching.pairs.size(), 40U);
    EXPECT_EQ(matching.unmatched_responses, std::vector<Index>{40});
    EXPECT_EQ(matching.unmatched_features, std::vector<Index>{40});
  }
}

TEST(Mixture, bootstrap_agrees_with_the_sandwich) {
  const Simulation sample = sensing_sample(400, 0.3, 10);
  const Vector sandwich = fit(sample.problem, Linear{}, Mixture{}).result().std_errors();
  const Vector drawn = fit(sample.problem, Linear{}, Mixture{.bootstrap = {100}}).result().std_errors();
  for (Index k = 0; k < drawn.size(); ++k) {
    EXPECT_GT(drawn(k), 0.6 * sandwich(k));
    EXPECT_LT(drawn(k), 1.6 * sandwich(k));
  }
}

TEST(Automatic, sees_that_the_row_order_is_partly_right) {
  const Result found = fit(sensing_sample(500, 0.4, 2).problem, Linear{}, Auto{}).result();
  EXPECT_EQ(found.choice.rfind("mixture", 0), 0U) << found.choice;
}

TEST(Automatic, takes_all_links_when_the_order_tells_nothing) {
  const Result found = fit(gamma_sample(1500, 2, 0, 1).problem, Linear{}, Auto{}).result();
  EXPECT_EQ(found.choice.rfind("entropic", 0), 0U) << found.choice;
}

TEST(Automatic, says_when_noise_was_given_and_when_the_dense_backend_was_asked_for) {
  const Problem problem = ordered(gamma_sample(60, 2, 0, 1).problem, RowOrder::unrelated);
  Auto automatic{.starts = {.starts = 1}};
  const auto says = [&](const char* words) {
    return fit(problem, Linear{}, automatic).result().choice.find(words) != std::string::npos;
  };
  EXPECT_TRUE(says("noise estimated\none response"));
  automatic.noise.sd = 0.1;
  automatic.precision.backend = Backend::dense;
  EXPECT_TRUE(says("noise given\nthe dense backend"));
}

TEST(Match, probabilities_are_those_of_one_to_one_links_between_unequal_sides) {
  for (const auto [n, m] : {std::array<Index, 2>{5, 5}, {5, 8}, {8, 5}, {2, 7}}) {
    RandomStream random(31, std::uint64_t(n));
    Problem problem;
    problem.y = Matrix::NullaryExpr(n, 1, [&] { return random.normal(); });
    problem.z = Matrix::NullaryExpr(m, 1, [&] { return random.normal(); });
    Result result;
    result.parameters = Vector::Ones(1);
    result.plan.epsilon = 0.3;
    FitContext context;
    context.estimator = context.chosen = Entropic{};
    const Fitted fitted(result, context, Linear(false).bound_to(problem));
    const Matching found = fitted.match(problem);
    EXPECT_EQ(Index(found.pairs.size()), std::min(n, m));
    // Rows or columns of ones for those who have nobody.
    Matrix odds = Matrix::Ones(std::max(n, m), std::max(n, m));
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) odds(i, j) = std::exp(-std::pow(problem.y(i, 0) - problem.z(j, 0), 2) / 0.3);
    }
    for (const Match& pair : found.pairs) {
      Matrix with_link = odds;
      with_link.row(pair.response_row).setZero();
      with_link(pair.response_row, pair.feature_row) = odds(pair.response_row, pair.feature_row);
      EXPECT_NEAR(pair.probability, permanent(with_link) / permanent(odds), 0.05) << n << " " << m;
    }
  }
}

TEST(Automatic, looks_at_all_links_where_the_order_that_was_hinted_at_is_chance) {
  Simulation sample = gamma_sample(3000, 2, 0, 3);  // wholly shuffled
  const Result alone = fit(ordered(sample.problem, RowOrder::unrelated), Linear{}, Auto{}).result();
  ASSERT_NE(alone.identifiable.verdict, Verdict::not_identifiable) << alone.identifiable.reason;
  for (const RowOrder order : {RowOrder::unknown, RowOrder::probably_linked}) {
    const Result found = fit(ordered(sample.problem, order), Linear{}, Auto{}).result();
    EXPECT_LT((found.parameters - alone.parameters).norm(), 1e-6);
    EXPECT_EQ(found.identifiable.verdict, alone.identifiable.verdict);
  }
}

TEST(Automatic, does_not_take_groups_for_an_order) {
  // Groups by response, shuffled within: rows beside each other share a group, and so agree without being linked.
  Simulation sample = sensing_sample(300, 1, 5);
  Problem& problem = sample.problem;
  std::vector<Index> by_response(300);
  std::iota(by_response.begin(), by_response.end(), Index{0});
  std::sort(by_response.begin(), by_response.end(),
            [&](Index a, Index b) { return problem.y(a, 0) < problem.y(b, 0); });
  const Matrix y = problem.y;
  const Matrix z = problem.z;
  problem.response_groups.resize(300);
  for (Index k = 0; k < 300; ++k) {
    const Index group = k / 60;
    const Index partner = 60 * group + (k + 7) % 60;
    problem.y.row(k) = y.row(by_response[std::size_t(k)]);
    problem.z.row(partner) = z.row(sample.permutation[std::size_t(by_response[std::size_t(k)])]);
    problem.response_groups[std::size_t(k)] = group;
  }
  problem.feature_groups = problem.response_groups;
  const Result found = fit(problem, Linear{}, Auto{}).result();
  EXPECT_EQ(found.choice.rfind("entropic", 0), 0U) << found.choice;
  problem.order = RowOrder::probably_linked;  // wrong, and the groups know more
  const Result misled = fit(problem, Linear{}, Auto{}).result();
  EXPECT_EQ(misled.choice.rfind("entropic", 0), 0U) << misled.choice;
  problem.feature_groups[0] = 1;  // a wrong key: no standard errors to show, but still to choose by
  const Result uneven = fit(problem, Linear{}, Auto{}).result();
  EXPECT_EQ(uneven.choice.rfind("entropic", 0), 0U) << uneven.choice;
  EXPECT_EQ(uneven.covariance.size(), 0);
  EXPECT_NE(uneven.identifiable.verdict, Verdict::identified);
}

TEST(Automatic, believes_the_order_where_it_knows_more_than_the_groups) {
  Simulation sample = sensing_sample(300, 0.2, 5);
  Problem& problem = sample.problem;
  for (int k = 0; k < 300; ++k) problem.response_groups.push_back(k % 3);
  problem.feature_groups = problem.response_groups;
  const Result found = fit(hinted(problem), Linear{}, Auto{}).result();
  EXPECT_EQ(found.choice.rfind("mixture", 0), 0U) << found.choice;
}

TEST(Automatic, regresses_on_pairs_when_all_are_known) {
  Simulation sample = sensing_sample(100, 1, 2);
  for (Index i = 0; i < 100; ++i) sample.problem.known.push_back({i, sample.permutation[std::size_t(i)]});
  const Result found = fit(sample.problem, Linear{}, Auto{}).result();
  EXPECT_EQ(found.choice.rfind("oracle", 0), 0U) << found.choice;
}

}  // namespace
}  // namespace unshuffle
