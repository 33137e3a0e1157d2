// Rows in partly correct order without a noise law: the bound on wrong links, regression adjusted for them, and whether
// an answer agrees with it.
#include "likelihood/wrong_links.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <numeric>

#include "core/normal.hpp"
#include "core/random.hpp"
#include "estimators/least_risk.hpp"
#include "likelihood/followed_mixture.hpp"
#include "likelihood/mixture.hpp"
#include "support/fits.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"

namespace unshuffle {
namespace {

/// A relation between columns drawn from N(0, 1) and a response, with some rows of the features moved.
struct Draw {
  Problem problem;
  Problem linked;  ///< The same rows before they were moved.
};

template <class Relation>
Draw drawn(Index rows, Index columns, double wrong, std::uint64_t seed, const Relation& relation) {
  RandomStream random(seed, 0);
  Draw made;
  Problem& linked = made.linked;
  linked.z = Matrix::NullaryExpr(rows, columns, [&] { return random.normal(); });
  linked.y.resize(rows, 1);
  for (Index i = 0; i < rows; ++i) linked.y(i, 0) = relation(Vector(linked.z.row(i)), random);
  made.problem = linked;
  const auto moved = Index(wrong * double(rows));
  const std::vector<Index> places = sample_rows(rows, std::min(moved, rows - 1), random);
  for (std::size_t k = places.size(); k > 1; --k)
    made.problem.z.row(places[k - 1]).swap(made.problem.z.row(places[std::size_t(random.below(Index(k)))]));
  return made;
}

Vector vector(double a, double b, double c) {
  Vector made(3);
  made << a, b, c;
  return made;
}

double straight(const Vector& z, RandomStream& random) { return 1 + 2 * z(0) - z(1) + 0.3 * random.normal(); }

/// The straight part explains about two thirds of it, and what is left is anything but normal noise.
double bent(const Vector& z, RandomStream& random) { return 1 + z(0) + std::exp(z(0)) - z(1) + 0.1 * random.normal(); }

CandidateLinks in_order(const Problem& problem) {
  CandidateLinks links;
  links.rows.z = problem.z;
  links.rows.y = problem.y;
  return links;
}

struct Regression {
  std::unique_ptr<Model> bound;
  CandidateLinks links;
  LeastSquares linked;
};

Regression on(const Problem& problem, CandidateLinks links) {
  Regression made{Linear{}.bound_to(completed(problem)), std::move(links), {}};
  made.linked = least_squares(*made.bound, made.links.rows, Vector::Zero(made.bound->parameters()), made.links.weights);
  return made;
}
Regression on(const Problem& problem) { return on(problem, in_order(problem)); }

TEST(MismatchRate, is_the_share_that_was_moved) {
  for (const double wrong : {0.1, 0.4, 0.8}) {
    const Regression all = on(drawn(6000, 2, wrong, 3, straight).problem);
    const MismatchRate found = largest_mismatch_rate(*all.bound, all.links, all.linked.parameters, 0);
    EXPECT_NEAR(found.rate, wrong, 4 * std::sqrt(found.variance)) << wrong;
    EXPECT_LT(std::sqrt(found.variance), 0.06);
    EXPECT_NEAR(found.influence.sum(), 0, 1e-9);
  }
}

TEST(MismatchRate, is_nearly_nothing_where_all_links_are_right_and_all_where_none_is) {
  const Regression right = on(drawn(3000, 2, 0, 4, bent).problem);
  EXPECT_LT(largest_mismatch_rate(*right.bound, right.links, right.linked.parameters, 0).rate, 0.05);
  const Regression wrong = on(drawn(3000, 2, 1, 4, bent).problem);
  EXPECT_GT(largest_mismatch_rate(*wrong.bound, wrong.links, wrong.linked.parameters, 0).rate, 0.8);
}

TEST(MismatchRate, is_not_deceived_by_noise_of_any_law) {
  const auto heavy = [](const Vector& z, RandomStream& random) {
    return 2 * z(0) - z(1) + 0.5 * random.normal() / std::sqrt(-2 * std::log(random.uniform()) / 2);
  };
  const auto skewed = [](const Vector& z, RandomStream& random) {
    return 2 * z(0) - z(1) - std::log(random.uniform());
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const Problem& problem :
         {drawn(3000, 2, 0.3, seed, heavy).problem, drawn(3000, 2, 0.3, seed, skewed).problem}) {
      const Regression all = on(problem);
      const MismatchRate found = largest_mismatch_rate(*all.bound, all.links, all.linked.parameters, 0);
      EXPECT_GT(found.rate, 0.3 - 4 * std::sqrt(found.variance));
      EXPECT_LT(found.rate, 0.45);
    }
  }
}

TEST(MismatchRate, knows_ties_few_rows_and_several_responses) {
  RandomStream random(8, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(600, 2, [&] { return std::round(random.normal()); });
  problem.y = Matrix(600, 2);
  problem.y << problem.z.col(0), problem.z.col(0) - 3 * problem.z.col(1);
  problem.z.topRows(150).colwise().reverseInPlace();
  const Regression all = on(problem);
  const MismatchRate found = largest_mismatch_rate(*all.bound, all.links, all.linked.parameters, 0);
  EXPECT_NEAR(found.rate, 0.25, 0.15);

  const Regression few = on(drawn(3, 1, 0, 1, [](const Vector& z, RandomStream&) { return z(0); }).problem);
  const MismatchRate of_few = largest_mismatch_rate(*few.bound, few.links, few.linked.parameters, 0);
  EXPECT_GE(of_few.rate, 0);
  EXPECT_LE(of_few.rate, 1);
}

TEST(Order, of_few_rows_is_chance_as_often_as_it_says) {
  const auto nothing = [](const Vector&, RandomStream& random) { return -std::log(1 - random.uniform()); };
  int below = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Problem problem = drawn(20, 3, 0, seed, nothing).problem;
    problem.z = problem.z.array().exp();
    const Regression all = on(problem);
    below += significance_of_order(*all.bound, all.links) < 0.05 ? 1 : 0;
  }
  EXPECT_LE(below, 12);
  EXPECT_GE(below, 1);
  const Regression some = on(drawn(60, 2, 0.3, 1, straight).problem);
  EXPECT_LT(significance_of_order(*some.bound, some.links), 1e-4);
}

TEST(Adjusted, is_least_squares_divided_by_the_share_of_right_links) {
  const Regression all = on(drawn(500, 3, 0.4, 5, straight).problem);
  const AdjustedFit found = fit_adjusted(*all.bound, all.links, all.linked, 0);
  ASSERT_GT(found.mismatch.rate, 0.2);
  const Vector wanted = all.linked.parameters.tail(3) / (1 - found.mismatch.rate);
  EXPECT_LT((found.parameters.tail(3) - wanted).norm(), 1e-9 * wanted.norm());
  const double mean = all.links.rows.y.mean() - all.links.rows.z.colwise().mean() * wanted;
  EXPECT_NEAR(found.parameters(0), mean, 1e-9);
}

TEST(Adjusted, with_groups_known_pairs_weights_and_x_is_regression_on_expected_rows) {
  // Expected rows written out: (I - α(I - 11ᵀ/n_b)) block by block, known pairs as they are.
  constexpr Index rows = 60, known = 10;
  RandomStream random(6, 0);
  Problem problem;
  problem.x = Matrix::NullaryExpr(rows, 1, [&] { return random.normal(); });
  problem.z = Matrix::NullaryExpr(rows, 2, [&] { return random.normal(); });
  problem.y = Matrix::NullaryExpr(rows, 1, [&] { return random.normal(); }) + problem.x + 2 * problem.z.col(0);
  CandidateLinks links = in_order(problem);
  links.rows.x = problem.x;
  links.known = known;
  links.weights = Vector::NullaryExpr(rows, [&] { return 0.5 + random.uniform(); });
  for (Index i = 0; i < rows; ++i) links.blocks.push_back(i < known ? i : known + i % 4);
  const Regression all = on(problem, links);
  const AdjustedFit found = fit_adjusted(*all.bound, all.links, all.linked, 0);
  const double rate = std::min(found.mismatch.rate, 1 - std::sqrt(found.mismatch.variance));
  Matrix z = problem.z;
  for (Index i = known; i < rows; ++i) {
    Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(2);
    double count = 0;
    for (Index j = known; j < rows; ++j) {
      if (j % 4 != i % 4) continue;
      mean += problem.z.row(j);
      ++count;
    }
    z.row(i) = (1 - rate) * problem.z.row(i) + rate * mean / count;
  }
  Matrix design(rows, 4);
  design << Vector::Ones(rows), problem.x, z;
  const Vector root = links.weights.cwiseSqrt();
  const Vector wanted = (root.asDiagonal() * design).colPivHouseholderQr().solve(root.cwiseProduct(problem.y.col(0)));
  EXPECT_LT((found.parameters - wanted).norm(), 1e-9);
}

TEST(Adjusted, intervals_hold_what_regression_on_right_links_finds_where_the_model_is_too_simple) {
  // E[z e^z] = e^½ for z ~ N(0, 1), so the best straight line through the bent relation has this slope.
  const double slope = 1 + std::exp(0.5);
  int held = 0;
  constexpr int draws = 200;
  double squares = 0;
  for (int k = 0; k < draws; ++k) {
    const Regression all = on(drawn(1500, 2, 0.4, std::uint64_t(k), bent).problem);
    const AdjustedFit found = fit_adjusted(*all.bound, all.links, all.linked, std::uint64_t(k));
    const double error = found.parameters(1) - slope;
    if (std::abs(error) <= normal_quantile * std::sqrt(found.covariance(1, 1))) ++held;
    squares += error * error;
  }
  EXPECT_GE(held, int(0.88 * draws));
  EXPECT_LT(std::sqrt(squares / draws), 0.1 * slope * std::sqrt(draws));
}

TEST(Adjusted, noise_is_that_of_right_links) {
  const Regression all = on(drawn(4000, 2, 0.3, 9, straight).problem);
  EXPECT_NEAR(std::sqrt(fit_adjusted(*all.bound, all.links, all.linked, 0).noise_variance), 0.3, 0.3);
}

TEST(Adjusted, needs_a_model_that_is_linear_in_its_coefficients) {
  EXPECT_THROW((void)fit(drawn(50, 2, 0.2, 1, straight).problem, Sine{}, Adjusted{}), InvalidInput);
}

TEST(Adjusted, bootstrap_of_rows_agrees_with_the_sandwich) {
  const Problem problem = drawn(1500, 2, 0.3, 12, bent).problem;
  const Vector sandwich = fit(problem, Linear{}, Adjusted{.wrong_share = WrongShare::bound}).result().std_errors();
  const Vector bootstrapped =
      fit(problem, Linear{}, Adjusted{.wrong_share = WrongShare::bound, .bootstrap = {100}}).result().std_errors();
  for (Index k = 0; k < sandwich.size(); ++k) {
    EXPECT_GT(bootstrapped(k), 0.6 * sandwich(k)) << k;
    EXPECT_LT(bootstrapped(k), 1.6 * sandwich(k)) << k;
  }
}

TEST(Agreement, is_had_by_the_truth_and_not_by_other_coefficients) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Regression all = on(drawn(800, 2, 0.5, seed, straight).problem);
    EXPECT_GT(agreement_with_regression(*all.bound, all.links, vector(1, 2, -1)), 1e-4);
    EXPECT_GT(agreement_with_regression(*all.bound, all.links, vector(1, 1.2, -0.6)), 1e-4)
        << "a share of wrong links does that";
    EXPECT_LT(agreement_with_regression(*all.bound, all.links, vector(1, 2, 1)), 1e-4);
    EXPECT_LT(agreement_with_regression(*all.bound, all.links, vector(0, 2, -1)), 1e-4);
  }
}

TEST(Agreement, does_not_depend_on_units) {
  Problem problem = drawn(800, 2, 0.5, 1, straight).problem;
  const Regression all = on(problem);
  const double here = agreement_with_regression(*all.bound, all.links, vector(1.1, 2, -0.9));
  problem.z.col(0) *= 1e9;
  problem.y *= 1e-6;
  const Regression scaled = on(problem);
  const double there = agreement_with_regression(*scaled.bound, scaled.links, vector(1.1e-6, 2e-15, -0.9e-6));
  EXPECT_NEAR(std::log(there), std::log(here), 1e-6);
}

TEST(SignificanceOfOrder, tells_rows_in_order_from_rows_in_none) {
  int small = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Regression shuffled = on(drawn(300, 2, 1, seed, straight).problem);
    if (significance_of_order(*shuffled.bound, shuffled.links) < 0.1) ++small;
    const Regression ordered = on(drawn(300, 2, 0.5, seed, straight).problem);
    EXPECT_LT(significance_of_order(*ordered.bound, ordered.links), 1e-4);
  }
  EXPECT_LE(small, 14);  // five expected
}

TEST(Mixture, a_bound_on_the_rate_is_kept_and_its_error_counted) {
  const Regression all = on(drawn(600, 2, 0.4, 2, straight).problem);
  MixtureOptions options;
  options.tolerance = 1e-14;
  options.max_iterations = 20000;
  const auto at = [&](double rate, double variance) {
    options.largest_rate = rate;
    options.rate_variance = variance;
    return fit_mixture(*all.bound, all.links, all.linked.parameters, options);
  };
  constexpr double rate = 0.2, step = 1e-3, variance = 0.01;
  const MixtureFit here = at(rate, variance);
  EXPECT_NEAR(here.mismatch_rate, rate, 1e-12);
  const Vector slope = (at(rate + step, 0).parameters - at(rate - step, 0).parameters) / (2 * step);
  const Matrix counted = (here.covariance - at(rate, 0).covariance) / variance;
  EXPECT_LT((counted - slope * slope.transpose()).norm(), 0.02 * slope.squaredNorm());
}

TEST(Automatic, adjusts_regression_where_a_mixture_is_contradicted) {
  const Draw sample = drawn(1200, 2, 0.3, 7, bent);
  const Regression truth = on(sample.linked);
  const auto error_of = [&](const Fitted& found) {
    return residuals(*truth.bound, truth.links.rows, found.parameters()).squaredNorm() / truth.linked.squares;
  };
  const Fitted mixture = fit(hinted(sample.problem), Linear{}, Mixture{});
  EXPECT_EQ(name_of(mixture.context().chosen), "mixture");
  EXPECT_NE(mixture.result().identifiable.verdict, Verdict::identified);
  EXPECT_LT(error_of(mixture), 1.1);
  const Fitted normal = fit(hinted(sample.problem), Linear{}, Mixture{.law = NoiseLawKind::normal});
  EXPECT_NE(normal.result().identifiable.verdict, Verdict::identified);
  EXPECT_GT(error_of(normal), 1.2);
  const Fitted chosen = fit(hinted(sample.problem), Linear{}, Auto{});
  EXPECT_EQ(name_of(chosen.context().chosen), "adjusted") << chosen.result().choice;
  EXPECT_LT(error_of(chosen), 1.1);
  const Fitted bound = fit(hinted(sample.problem), Linear{}, Adjusted{.wrong_share = WrongShare::bound});
  EXPECT_LT(error_of(bound), 1.05);
}

TEST(Automatic, keeps_the_mixture_where_the_model_is_right_whatever_the_noise) {
  const auto skewed = [](const Vector& z, RandomStream& random) {
    return 2 * z(0) - z(1) - 0.2 * std::log(random.uniform());
  };
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Fitted found = fit(hinted(drawn(600, 2, 0.5, seed, skewed).problem), Linear{}, Auto{});
    EXPECT_EQ(name_of(found.context().chosen), "mixture");
  }
}

/// A mixture that found `w` with this standard error of every coefficient, so many nats better than no link right.
Estimate mixture_with(const Vector& w, double error, double gain = 200) {
  Estimate made;
  made.gain = gain;
  made.candidates.resize(1);
  made.candidates.front().parameters = w;
  made.covariance = error * error * Matrix::Identity(w.size(), w.size());
  return made;
}

TEST(LeastRisk, weights_the_mixture_by_its_error_and_not_at_all_where_that_means_nothing) {
  const Problem problem = completed(drawn(500, 2, 0.5, 1, straight).problem);
  const auto bound = Linear{}.bound_to(problem);
  const unshuffle::Run run{};
  const Vector truth = vector(1, 2, -1);
  const auto weight = [&](const Estimate& mixture) { return least_risk({problem, *bound, run}, mixture).mixture; };
  EXPECT_GT(weight(mixture_with(truth, 0.01)), 0.9);
  EXPECT_LT(weight(mixture_with(truth, 10)), 0.01);
  EXPECT_LT((least_risk({problem, *bound, run}, mixture_with(truth, 1e-6)).parameters - truth).norm(), 1e-3);
  Estimate none = mixture_with(truth, 0.01);
  none.rests_on_ties = true;
  EXPECT_EQ(weight(none), 0);
  none = mixture_with(truth, 0.01);
  none.covariance.resize(0, 0);
  EXPECT_EQ(weight(none), 0);
}

TEST(LeastRisk, distrusts_a_mixture_whose_coefficients_cost_more_nats_than_it_gains) {
  const Problem problem = completed(drawn(500, 2, 0.5, 1, straight).problem);
  const auto bound = Linear{}.bound_to(problem);
  const unshuffle::Run run{};
  const auto weight = [&](double gain) {
    return least_risk({problem, *bound, run}, mixture_with(vector(5, -2, 3), 0.01, gain)).mixture;
  };
  EXPECT_GT(weight(200), 0.9);
  EXPECT_LT(weight(0), 0.1);
  EXPECT_LT(weight(15), 0.2);  // three coefficients of 500 rows cost 18.6
}

/// Mean square distance of predictions from those of regression on right links, beside what that leaves unexplained.
double excess(const Draw& sample, const Vector& w) {
  const Regression truth = on(sample.linked);
  return residuals(*truth.bound, truth.links.rows, w).squaredNorm() / truth.linked.squares - 1;
}

TEST(LeastRisk, adjusts_regression_as_far_as_rows_allow) {
  const auto noisy = [](const Vector& z, RandomStream& random) { return 0.3 * z(0) + 3 * random.normal(); };
  const auto found = [&](const Problem& of) {
    const Problem problem = completed(of);
    const auto bound = Linear{}.bound_to(problem);
    const unshuffle::Run run{};
    return least_risk({problem, *bound, run}, Estimate{});
  };
  double gained = 0, far = 0, near = 0;
  constexpr int draws = 10;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    const Draw sample = drawn(1000, 2, 0.5, seed, straight);
    const LeastRisk half_wrong = found(sample.problem);
    far += half_wrong.share / draws;
    gained += excess(sample, half_wrong.parameters) / excess(sample, on(sample.problem).linked.parameters) / draws;
    near += found(drawn(30, 4, 0.5, seed, noisy).problem).share / draws;
  }
  EXPECT_GT(far, 0.3);
  EXPECT_LT(far, 0.5);
  EXPECT_LT(gained, 0.5);
  EXPECT_LT(near, 0.3);
}

TEST(Automatic, of_rows_that_say_little_is_no_worse_than_least_squares) {
  const auto noisy = [](const Vector& z, RandomStream& random) { return 2 * z(0) - z(1) + 2 * random.normal(); };
  double by_auto = 0, by_least_squares = 0;
  int open = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Draw sample = drawn(40, 4, 0.6, seed, noisy);
    const Fitted found = fit(hinted(sample.problem), Linear{}, Auto{});
    by_auto += excess(sample, found.parameters());
    by_least_squares += excess(sample, on(sample.problem).linked.parameters);
    open += found.result().identifiable.verdict == Verdict::not_identifiable ? 1 : 0;
  }
  EXPECT_GT(open, 10);
  EXPECT_LT(by_auto, by_least_squares);
}

/// Whether a far row is noise or a wrong link, the shape of a response that levels off cannot tell.
TEST(FollowedMixture, is_sure_of_a_wrong_answer_if_every_nat_of_a_curve_counts) {
  const auto levelling = [](const Vector& z, RandomStream& random) {
    return std::exp(0.5 * (z(0) - z(1) + random.normal()));
  };
  const auto followed = [](const Draw& sample) {
    const Regression moved = on(sample.problem);
    const MismatchRate largest = largest_mismatch_rate(*moved.bound, moved.links, moved.linked.parameters, 0);
    return follow_mixture(*moved.bound, moved.links, moved.linked, largest);
  };
  const Draw curve = drawn(4000, 2, 0.5, 1, levelling);
  const FollowedMixture open = followed(curve);
  const Regression truth = on(curve.linked);
  const Matrix inverse = truth.linked.matrix.inverse() * truth.linked.squares / 4000;
  for (Index k = 1; k < 3; ++k) {
    EXPECT_GT(std::abs(open.if_exact.parameters(k) - truth.linked.parameters(k)),
              2 * std::sqrt(open.if_exact.covariance(k, k) + inverse(k, k)));
  }
  // Where right links stand out, a hundred rows tell how many there are.
  const FollowedMixture sure = followed(drawn(4000, 2, 0.5, 1, straight));
  EXPECT_LT(sure.rate_sd, 0.06);
}

TEST(Automatic, says_how_an_answer_that_is_not_identified_was_weighted) {
  const auto noisy = [](const Vector& z, RandomStream& random) { return z(0) + random.normal(); };
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (const bool sure : {true, false}) {
      const Problem problem =
          sure ? drawn(800, 2, 0.3, seed, straight).problem : drawn(40, 4, 0.5, seed, noisy).problem;
      const Result found = fit(hinted(problem), Linear{}, Auto{}).result();
      EXPECT_EQ(found.identifiable.verdict == Verdict::identified, sure) << found.identifiable.reason;
      EXPECT_EQ(found.choice.find("expected errors") == std::string::npos, sure) << found.choice;
    }
  }
}

TEST(StandardErrors, do_not_depend_on_units) {
  Problem problem = drawn(400, 2, 0.2, 3, straight).problem;
  for (const Estimator& method : {Estimator(Mixture{}), Estimator(Adjusted{}), Estimator(Ls{})}) {
    Vector errors = fit(problem, Linear{}, method).result().std_errors();
    Problem scaled = problem;
    scaled.z.col(0) *= 1e9;
    Vector others = fit(scaled, Linear{}, method).result().std_errors();
    if (errors.size() == 0) continue;
    others(1) *= 1e9;
    EXPECT_LT((others - errors).cwiseQuotient(errors).cwiseAbs().maxCoeff(), 1e-3);
  }
}

}  // namespace
}  // namespace unshuffle
