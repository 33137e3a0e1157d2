// Every comparison method: a case it solves, a case it is known to fail, the symmetries it must have, and agreement
// with independent programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/random.hpp"
#include "estimators/huber.hpp"
#include "estimators/swap_chain.hpp"
#include "estimators/unlinked.hpp"
#include "starts/alignment.hpp"
#include "support/fits.hpp"
#include "support/stored_answers.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/objective/unrolled.hpp"
#include "unshuffle/tables/simulate.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {
namespace {

const nlohmann::json& oracle() {
  static const nlohmann::json parsed = stored_answers("methods.json");
  return parsed;
}

Simulation sensing(Index rows, Index dim_z, double shuffle, double snr, std::uint64_t seed) {
  SimulateOptions options;
  options.rows = rows;
  options.dim_z = dim_z;
  options.shuffle = shuffle;
  options.snr = snr;
  options.mean = 1;
  options.seed = seed;
  return simulate(options);
}

double test_error(const Simulation& simulation, const Vector& w) {
  const Matrix& y = simulation.test.y;
  const Vector predicted = (simulation.test.z * w.tail(simulation.test.z.cols())).array() + w(0);
  return (predicted - y.col(0)).squaredNorm() / (y.array() - y.mean()).matrix().squaredNorm();
}

const Rs few_samples{.samples = 5000};

/// Features of skewed, distinct shapes, so that w is identified without any hint; fully shuffled, hardly any noise.
Problem identifiable(Index rows, std::uint64_t seed, double noise = 1e-3) {
  RandomStream random(seed, 77);
  Problem problem;
  problem.z.resize(rows, 2);
  problem.y.resize(rows, 1);
  for (Index i = 0; i < rows; ++i) {
    problem.z(i, 0) = -std::log(random.uniform());
    problem.z(i, 1) = random.uniform();
    problem.y(i, 0) = 1 + 2 * problem.z(i, 0) - problem.z(i, 1) + noise * random.normal();
  }
  const std::vector<Index> order = sample_rows(rows, rows - 1, random);
  Matrix shuffled = problem.y;
  for (std::size_t k = 0; k < order.size(); ++k) shuffled.row(order[k]) = problem.y.row(order[(k + 1) % order.size()]);
  problem.y = shuffled;
  return problem;
}

const Vector identifiable_truth = (Vector(3) << 1, 2, -1).finished();

std::vector<Index> reversed_rows(Index rows) {
  std::vector<Index> order(static_cast<std::size_t>(rows));
  std::iota(order.rbegin(), order.rend(), Index{0});
  return order;
}

TEST(Methods, names_are_unique_and_lead_back_to_their_method) {
  for (std::size_t k = 0; k < all_estimators().size(); ++k) {
    const EstimatorTraits& traits = all_estimators()[k].traits;
    ASSERT_TRUE(estimator_named(traits.name)) << traits.name;
    EXPECT_EQ(estimator_named(traits.name)->index(), k);
    EXPECT_EQ(name_of(*estimator_named(traits.name)), traits.name);
    EXPECT_FALSE(traits.help.empty());
  }
  EXPECT_EQ(all_estimators().size(), std::variant_size_v<Estimator>);
  EXPECT_FALSE(estimator_named("no such method"));
}

TEST(Methods, oracle_and_ls_agree_with_ordinary_least_squares_on_their_links) {
  const Simulation simulation = sensing(300, 3, 0.5, 100, 1);
  Problem problem = simulation.problem;
  const Result ls = fit(problem, Linear{}, Ls{}).result();
  EXPECT_NEAR(test_error(simulation, ls.parameters), least_squares_test_error(simulation, false), 1e-9);
  for (Index i = 0; i < 300; ++i) problem.known.push_back({i, simulation.permutation[std::size_t(i)]});
  const Result oracle_fit = fit(problem, Linear{}, Oracle{}).result();
  EXPECT_NEAR(test_error(simulation, oracle_fit.parameters), least_squares_test_error(simulation, true), 1e-9);
  EXPECT_EQ(oracle_fit.std_errors().size(), 4);
  EXPECT_EQ(oracle_fit.status, Status::converged);
  EXPECT_LT(((oracle_fit.parameters.tail(3) - simulation.coefficients).cwiseAbs().array() /
             oracle_fit.std_errors().tail(3).array())
                .maxCoeff(),
            4);
}

TEST(Methods, oracle_without_known_pairs_is_refused) {
  EXPECT_THROW((void)fit(sensing(50, 2, 0.5, 100, 1).problem, Linear{}, Oracle{}), InvalidInput);
}

TEST(Methods, ls_rr_and_sliced_gw_refuse_tables_of_unequal_length) {
  Problem problem = sensing(50, 2, 0.5, 100, 1).problem;
  problem.z.conservativeResize(40, Eigen::NoChange);
  problem.feature_weights.resize(0);
  for (const Estimator& method : {Estimator(Ls{}), Estimator(Rr{}), Estimator(SlicedGw{})}) {
    EXPECT_THROW((void)fit(problem, Linear{}, method), InvalidInput) << name_of(method);
  }
}

TEST(Methods, rr_and_rs_refuse_models_that_are_not_linear) {
  const Problem problem = hinted(sensing(50, 2, 0.5, 100, 1).problem);
  for (const Estimator& method : {Estimator(Rr{}), Estimator(few_samples)}) {
    EXPECT_THROW((void)fit(problem, Sine{}, method), InvalidInput) << name_of(method);
  }
}

TEST(Methods, hinted_methods_solve_a_fifth_of_wrong_links_where_ls_does_not) {
  const Simulation simulation = sensing(400, 3, 0.2, 100, 2);
  const double best = least_squares_test_error(simulation, true);
  EXPECT_GT(test_error(simulation, fit(simulation.problem, Linear{}, Ls{}).parameters()), 2 * best);
  const Rs loose{.samples = 5000, .threshold = 0.1};
  for (const Estimator& method :
       {Estimator(Rr{}), Estimator(loose), Estimator(Am{}), Estimator(Em{}), Estimator(HardEm{})}) {
    const Result found = fit(hinted(simulation.problem), Linear{}, method).result();
    EXPECT_LT(test_error(simulation, found.parameters), 1.5 * best) << name_of(method) << ": " << found.message;
  }
}

TEST(Methods, rr_fails_once_most_links_are_wrong) {
  const Simulation simulation = sensing(400, 3, 1.0, 100, 3);
  const Result found = fit(simulation.problem, Linear{}, Rr{}).result();
  EXPECT_GT(test_error(simulation, found.parameters), 0.2);
}

TEST(Methods, am_solves_full_shuffles_that_identify_w_and_stops_when_the_matching_repeats) {
  const Result found = fit(identifiable(300, 4), Linear{}, Am{.starts = {.starts = 20}}).result();
  EXPECT_LT((found.parameters - identifiable_truth).norm(), 0.02) << found.parameters.transpose();
  EXPECT_EQ(found.status, Status::converged);
  EXPECT_NE(found.message.find("repeats"), std::string::npos);
}

TEST(Methods, am_objective_never_rises_with_exact_refits) {
  const Result found = fit(identifiable(100, 5, 0.3), Linear{}, Am{.starts = {.starts = 3}}).result();
  const std::vector<TracePoint>& trace = found.course.trace;
  for (std::size_t k = 1; k < trace.size(); ++k) {
    if (trace[k].start != trace[k - 1].start) continue;
    EXPECT_LE(trace[k].objective, trace[k - 1].objective * (1 + 1e-12));
  }
}

TEST(Methods, am_matches_several_outputs_by_assignment_and_leaves_rows_over) {
  RandomStream random(3, 5);
  Problem problem;
  problem.z = Matrix::NullaryExpr(40, 2, [&] { return random.normal(); });
  const Matrix w = (Matrix(2, 3) << 1, -1, 2, 0.5, 2, -1).finished();
  problem.y = (problem.z * w)(sample_rows(40, 30, random), Eigen::all);
  const Vector start{{0, 0.9, 0.6, 0, -1.1, 1.9, 0, 2.1, -0.9}};
  const Result found = fit(problem, Linear{}, Am{.starts = starting_at(start)}).result();
  EXPECT_LT(found.objective.value, 1e-18);
  EXPECT_EQ(found.rows.responses, 30);
  EXPECT_EQ(found.rows.features, 40);
}

TEST(Methods, am_from_a_bad_start_is_stuck_far_from_the_truth) {
  const Simulation simulation = sensing(300, 5, 1.0, 100, 6);
  const Am am{.starts = starting_at(-Vector::Unit(6, 1))};
  const Result found = fit(simulation.problem, Linear{}, am).result();
  EXPECT_EQ(found.status, Status::converged);
  EXPECT_GT((found.parameters.tail(5) - simulation.coefficients).norm(), 0.5 * simulation.coefficients.norm());
}

TEST(Methods, am_gradient_steps_reach_the_exact_fixed_point_from_nearby) {
  const Problem problem = identifiable(120, 7);
  Am am{.starts = starting_at(identifiable_truth.array() + 0.02)};
  const Result exact = fit(problem, Linear{}, am).result();
  am.matched_step = MatchedStep::gradient;
  am.step.learning_rate = 5e-4;
  am.limit = {5000};
  const Result stepped = fit(problem, Linear{}, am).result();
  EXPECT_EQ(stepped.status, Status::converged) << stepped.message;
  EXPECT_LT((stepped.parameters - exact.parameters).norm(), 1e-4);
}

TEST(Methods, paper_settings_train_robot_and_am_on_batches) {
  const Simulation simulation = sensing(600, 2, 0.5, 100, 8);
  Robot robot = with_paper_settings(Robot{}, 600, true);
  EXPECT_EQ(robot.descent.step.batch, 500);
  EXPECT_EQ(robot.limit.max_iterations, 2000);
  Am am = with_paper_settings(Am{}, 600, true);
  EXPECT_EQ(am.step.batch, 500);
  EXPECT_EQ(am.limit.max_iterations, 2000);
  robot.limit = am.limit = {20};
  for (const Estimator& method : {Estimator(robot), Estimator(am)}) {
    const Result found = fit(hinted(simulation.problem), Linear{}, method).result();
    EXPECT_EQ(found.course.iterations, 20) << name_of(method);
    EXPECT_LT(test_error(simulation, found.parameters), 0.2) << name_of(method);
  }
}

TEST(Methods, em_average_counts_every_pair_by_the_time_it_held) {
  // Three rows, costs that make the posterior over the six permutations known in closed form.
  Problem problem;
  problem.y = (Vector(3) << 0, 1, 2.5).finished();
  problem.z = (Vector(3) << 0.2, 1.3, 1.9).finished();
  problem = completed(problem);
  const auto bound = Linear(false).bound_to(problem);
  const UnlinkedRows rows(problem, *bound);
  const PairCosts costs(*bound, rows.tables(), Vector::Ones(1));
  SwapChain chain(rows.blocks(), links_in_order(problem), RandomStream(1, 1));
  const double variance = 0.7;
  const WeightedLinks sampled = chain.sample(costs, variance, 1000, 400000);
  Matrix seen = Matrix::Zero(3, 3);
  for (std::size_t k = 0; k < sampled.shares.size(); ++k) {
    seen(sampled.links.responses[k], sampled.links.features[k]) += sampled.shares[k];
  }
  Matrix expected = Matrix::Zero(3, 3);
  std::vector<Index> permutation{0, 1, 2};
  double total = 0;
  do {
    double cost = 0;
    for (Index i = 0; i < 3; ++i) cost += costs(i, permutation[std::size_t(i)]);
    const double weight = std::exp(-cost / (2 * variance));
    total += weight;
    for (Index i = 0; i < 3; ++i) expected(i, permutation[std::size_t(i)]) += weight;
  } while (std::next_permutation(permutation.begin(), permutation.end()));
  EXPECT_LT((seen - expected / total).cwiseAbs().maxCoeff(), 0.01) << seen << "\n\n" << expected / total;
}

TEST(Methods, chain_stays_within_groups_and_one_to_one_for_unequal_sides) {
  Problem problem;
  RandomStream random(4, 4);
  problem.y = Matrix::NullaryExpr(7, 1, [&] { return random.normal(); });
  problem.z = Matrix::NullaryExpr(9, 1, [&] { return random.normal(); });
  problem.response_groups = {0, 0, 0, 1, 1, 1, 1};
  problem.feature_groups = {0, 0, 1, 0, 1, 0, 1, 0, 0};
  problem = completed(problem);
  const auto bound = Linear(false).bound_to(problem);
  const UnlinkedRows rows(problem, *bound);
  const PairCosts costs(*bound, rows.tables(), Vector::Ones(1));
  SwapChain chain(rows.blocks(), {}, RandomStream(1, 1));
  const double before = chain.total_cost(costs);
  const Links best = chain.best_visited(costs, 0.1, 5000);
  EXPECT_LE(chain.total_cost(costs), before);
  ASSERT_EQ(best.size(), 6);  // three responses of group 0, three features of group 1
  std::vector<Index> features = best.features;
  std::sort(features.begin(), features.end());
  EXPECT_EQ(std::adjacent_find(features.begin(), features.end()), features.end());
  for (std::size_t k = 0; k < best.responses.size(); ++k) {
    EXPECT_EQ(problem.response_groups[std::size_t(best.responses[k])],
              problem.feature_groups[std::size_t(best.features[k])]);
  }
  // A long cold walk finds the optimal assignment of so small a problem.
  const Links optimal = rows.best(Vector::Ones(1));
  double least = 0;
  for (std::size_t k = 0; k < optimal.responses.size(); ++k) least += costs(optimal.responses[k], optimal.features[k]);
  EXPECT_NEAR(chain.total_cost(costs), least, 1e-12);
}

TEST(Methods, em_from_nowhere_collapses_as_the_paper_says) {
  // One standard normal feature, fully shuffled: at w = 0 the posterior is uniform and no iteration leaves it.
  RandomStream random(8, 8);
  Problem problem;
  problem.z = Matrix::NullaryExpr(200, 1, [&] { return random.normal(); });
  problem.y = 2 * problem.z.colwise().reverse();
  const Em em{.starts = starting_at(Vector::Zero(1)), .limit = {10}};
  const Result found = fit(problem, Linear(false), em).result();
  EXPECT_LT(std::abs(found.parameters(0)), 0.5);
}

TEST(Methods, em_uses_features_beside_the_response) {
  RandomStream random(9, 9);
  Problem problem;
  problem.x = Matrix::NullaryExpr(60, 1, [&] { return random.normal(); });
  problem.z = Matrix::NullaryExpr(60, 1, [&] { return random.normal(); });
  problem.y = (1 + 2 * problem.x.array() - 3 * problem.z.array()).matrix();
  const Result found = fit(hinted(problem), Linear{}, Em{}).result();
  EXPECT_LT((found.parameters - (Vector(3) << 1, 2, -3).finished()).norm(), 0.1) << found.parameters.transpose();
}

TEST(Methods, rr_agrees_with_scikit_learn_and_scipy) {
  const auto& stored = oracle()["huber"];
  Problem problem;
  problem.z = matrix_of(stored["x"]);
  problem.y = vector_of(stored["y"]);
  problem = completed(problem);
  const auto bound = Linear{}.bound_to(problem);
  const Links links = links_in_order(problem);
  const LinkedRows rows = link(problem, *bound, links.responses, links.features);
  const HuberFit as_scipy = huber_regression(*bound, rows, stored["scipy"]["threshold"], Vector::Zero(4));
  EXPECT_TRUE(as_scipy.converged);
  EXPECT_LT((as_scipy.parameters - vector_of(stored["scipy"]["w"])).norm(), 1e-6);
  EXPECT_NEAR(as_scipy.loss, stored["scipy"]["loss"], 1e-9);
  const HuberFit as_sklearn = huber_regression(*bound, rows, stored["sklearn"]["threshold"], Vector::Zero(4));
  EXPECT_LT((as_sklearn.parameters - vector_of(stored["sklearn"]["w"])).norm(), 1e-4);
}

TEST(Methods, rs_without_a_hint_solves_small_exact_problems) {
  const Rs rs{.samples = 20000, .threshold = 1e-3};
  const Result found = fit(identifiable(12, 10, 0), Linear{}, rs).result();
  EXPECT_LT((found.parameters - identifiable_truth).norm(), 1e-2) << found.message;
  EXPECT_NE(found.message.find("12 of 12 rows agree"), std::string::npos) << found.message;
}

TEST(Methods, rs_with_too_few_samples_for_the_dimension_fails) {
  const Simulation simulation = sensing(300, 10, 0.7, 100, 11);
  EXPECT_GT(test_error(simulation, fit(hinted(simulation.problem), Linear{}, Rs{.samples = 20}).parameters()),
            2 * least_squares_test_error(simulation, true));
}

TEST(Methods, gromov_wasserstein_agrees_with_pot) {
  const auto& stored = oracle()["gromov"];
  const Matrix u = matrix_of(stored["u"]);
  const Matrix v = matrix_of(stored["v"]);
  const auto matching = stored["matching"].get<std::vector<Index>>();
  EXPECT_NEAR(gromov_wasserstein_cost(u, v(matching, Eigen::all)), stored["loss"], 1e-9);
  const SoftAlignment soft = entropic_alignment(u, v, stored["epsilon"], 2000);
  EXPECT_TRUE(soft.converged) << soft.message;
  EXPECT_LT((soft.plan - matrix_of(stored["plan"])).cwiseAbs().sum(), 1e-4);
}

TEST(Methods, alignments_recover_a_rotated_and_shuffled_cloud) {
  // y is a rotation of z: distances are the same on both sides, and the shape has no symmetry.
  RandomStream random(12, 12);
  Problem problem;
  problem.z = Matrix::NullaryExpr(40, 2, [&] { return -std::log(random.uniform()); });
  problem.z.col(1) *= 0.5;
  problem.z.rowwise() -= problem.z.colwise().mean();
  problem.y = (problem.z * (Matrix(2, 2) << 0.6, -0.8, 0.8, 0.6).finished()).colwise().reverse();
  const Result soft = fit(problem, Linear{}, SinkhornGw{.epsilon = 1e-3}).result();
  EXPECT_LT(soft.objective.value, 0.2 * problem.y.squaredNorm()) << soft.message;
}

TEST(Methods, sliced_alignment_solves_a_line_up_to_its_mirror_image) {
  RandomStream random(13, 13);
  const Matrix u = Matrix::NullaryExpr(50, 1, [&] { return -std::log(random.uniform()); });
  const std::vector<Index> order = reversed_rows(50);
  const Matrix v = 3 * u(order, Eigen::all);
  const std::vector<Index> partner = sliced_alignment(u, v, 5, RandomStream(0, 0));
  for (Index i = 0; i < 50; ++i) EXPECT_EQ(partner[std::size_t(i)], 49 - i);
}

TEST(Methods, alignments_cannot_see_several_features_in_one_response) {
  const Simulation simulation = sensing(80, 5, 1.0, 100, 14);
  for (const Estimator& method : {Estimator(SlicedGw{}), Estimator(SinkhornGw{})}) {
    const Result found = fit(simulation.problem, Linear{}, method).result();
    EXPECT_GT(test_error(simulation, found.parameters), 0.3) << name_of(method);
  }
}

TEST(Methods, one_step_recovers_links_of_many_outputs) {
  RandomStream random(21, 0);
  constexpr Index rows = 150, features = 4, outputs = 12;
  const Matrix truth = Matrix::NullaryExpr(features, outputs, [&] { return random.normal(); });
  Problem problem;
  problem.z = Matrix::NullaryExpr(rows, features, [&] { return random.normal(); });
  problem.y = problem.z * truth;
  problem.y += 0.05 * Matrix::NullaryExpr(rows, outputs, [&] { return random.normal(); });
  // 60 rows change places in a ring.
  const Matrix linked = problem.y;
  for (Index i = 0; i < 60; ++i) problem.y.row(i) = linked.row((i + 1) % 60);
  const Result in_order = fit(problem, Linear{}, Ls{}).result();
  const Result found = fit(problem, Linear{}, OneStep{}).result();
  EXPECT_LT(found.noise_sd, 0.06);
  EXPECT_GT(in_order.noise_sd, 0.5);
  EXPECT_EQ(found.covariance.size(), 0);
}

TEST(Methods, one_step_needs_tables_of_equal_length) {
  Problem problem = identifiable(30, 5);
  problem.z.conservativeResize(29, Eigen::NoChange);
  EXPECT_THROW((void)fit(problem, Linear{}, OneStep{}), InvalidInput);
}

TEST(Methods, unrolled_gradient_agrees_with_complex_step_differentiation) {
  const auto& stored = oracle()["unrolled"];
  const UnrolledSinkhorn made = unrolled_sinkhorn(matrix_of(stored["cost"]), vector_of(stored["a"]),
                                                  vector_of(stored["b"]), stored["epsilon"], stored["iterations"]);
  EXPECT_NEAR(made.transport_cost, stored["transport_cost"], 1e-12);
  EXPECT_LT((made.weights - matrix_of(stored["gradient"])).cwiseAbs().maxCoeff(), 1e-12);
}

TEST(Methods, unrolled_gradient_tends_to_the_implicit_one_and_differs_before) {
  RandomStream random(15, 15);
  const Matrix cost = Matrix::NullaryExpr(8, 8, [&] { return random.uniform(); });
  const Vector weights = Vector::Constant(8, 0.125);
  const Matrix implicit = transport::solve(cost, {.epsilon = 0.05, .relative = false, .tolerance = 1e-12}).gradient();
  const auto distance = [&](int iterations) {
    return (unrolled_sinkhorn(cost, weights, weights, 0.05, iterations).weights - implicit).norm() / implicit.norm();
  };
  EXPECT_LT(distance(2000), 1e-7);
  EXPECT_GT(distance(3), 1e-2);
  EXPECT_LT(distance(100), distance(3));
}

TEST(Methods, unrolled_sinkhorn_refuses_what_makes_no_sense) {
  const Matrix cost = Matrix::Ones(2, 3);
  EXPECT_THROW((void)unrolled_sinkhorn(cost, Vector::Ones(3), Vector::Ones(3), 1, 5), InvalidInput);
  EXPECT_THROW((void)unrolled_sinkhorn(cost, Vector::Ones(2), Vector::Ones(3), 0, 5), InvalidInput);
  EXPECT_THROW((void)unrolled_sinkhorn(cost, Vector::Ones(2), Vector::Ones(3), 1, 0), InvalidInput);
  EXPECT_THROW((void)unrolled_sinkhorn(cost, Vector::Zero(2), Vector::Ones(3), 1, 5), InvalidInput);
}

TEST(Methods, robot_unrolled_ends_where_robot_does_when_iterations_suffice) {
  const Problem problem = identifiable(30, 16, 0.05);
  const StartOptions starts = starting_at(identifiable_truth.array() + 0.1);
  const Smoothing smoothing{.epsilon_abs = 0.05};
  const DescentOptions descent{.optimizer = Optimizer::lbfgs};
  const Result implicit =
      fit(problem, Linear{}, Robot{.smoothing = smoothing, .starts = starts, .descent = descent}).result();
  const RobotUnrolled longer{.unroll = 300, .smoothing = smoothing, .starts = starts, .descent = descent};
  const Result unrolled = fit(problem, Linear{}, longer).result();
  EXPECT_EQ(unrolled.status, Status::converged) << unrolled.message;
  EXPECT_LT((unrolled.parameters - implicit.parameters).norm(), 1e-3);
}

// Methods that read no row order must not change when the features are reordered; those that do must not change when
// both tables are reordered together. Random starts and samples are drawn by row number, so where a method draws rows
// its own answer is compared only after it has found the same optimum.
class Reordered : public testing::TestWithParam<Estimator> {};

TEST_P(Reordered, feature_rows_do_not_change_methods_without_a_hint) {
  const Problem problem = identifiable(80, 17);
  Problem other = problem;
  other.z = problem.z(reversed_rows(80), Eigen::all);
  const Vector start = identifiable_truth.array() + 0.05;
  const Estimator method = with_option_if_read(GetParam(), "start", std::vector<double>(start.begin(), start.end()));
  const Result one = fit(problem, Linear{}, method).result();
  const Result two = fit(other, Linear{}, method).result();
  EXPECT_LT((one.parameters - two.parameters).norm(), 5e-3) << one.parameters.transpose() << "\n"
                                                            << two.parameters.transpose();
}

INSTANTIATE_TEST_SUITE_P(Methods, Reordered,
                         testing::Values(Am{}, Em{}, HardEm{}, SlicedGw{}, SinkhornGw{}, RobotUnrolled{}),
                         [](const auto& tested) {
                           std::string name(name_of(tested.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class ReorderedTogether : public testing::TestWithParam<Estimator> {};

TEST_P(ReorderedTogether, both_tables_reordered_give_the_same_answer) {
  const Simulation simulation = sensing(300, 2, 0.3, 1000, 18);
  Problem other = simulation.problem;
  other.z = simulation.problem.z(reversed_rows(300), Eigen::all);
  other.y = simulation.problem.y(reversed_rows(300), Eigen::all);
  const Result one = fit(hinted(simulation.problem), Linear{}, GetParam()).result();
  const Result two = fit(hinted(other), Linear{}, GetParam()).result();
  // Samples are drawn by row number: rs finds the same consensus up to its own noise.
  const double tolerance = std::holds_alternative<Rs>(GetParam()) ? 0.05 : 1e-8;
  EXPECT_LT((one.parameters - two.parameters).norm(), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Methods, ReorderedTogether, testing::Values(Ls{}, Rr{}, few_samples),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST(Methods, every_method_gives_the_same_answer_for_any_number_of_threads) {
  const Simulation simulation = sensing(60, 2, 0.3, 100, 19);
  Problem problem = hinted(simulation.problem);
  problem.known = {{3, simulation.permutation[3]},
                   {8, simulation.permutation[8]},
                   {9, simulation.permutation[9]},
                   {20, simulation.permutation[20]}};
  for (const auto& [traits, infos] : all_estimators()) {
    if (traits.name == "registration") continue;  // of points, which has a test of its own
    Estimator method = *estimator_named(traits.name);
    for (const auto& [option, value] : {std::pair("max_iterations", 5), {"unroll", 20}, {"rs_samples", 5000}})
      method = with_option_if_read(method, option, std::int64_t{value});
    const Fitted one = fit(problem, Linear{}, method, {.threads = 1});
    const Fitted two = fit(problem, Linear{}, method, {.threads = 2});
    EXPECT_EQ(one.parameters(), two.parameters()) << traits.name;
    EXPECT_EQ(one.result().objective.value, two.result().objective.value) << traits.name;
    EXPECT_GT(one.result().plan.epsilon, 0) << traits.name;
    EXPECT_EQ(!one.result().course.trace.empty(), traits.traced) << traits.name;
    EXPECT_FALSE(one.summary().empty());
  }
}

TEST(Methods, known_pairs_are_blocks_of_their_own) {
  Problem problem = identifiable(20, 20);
  problem.known = {{2, 5}, {7, 1}};
  const std::vector<Block> blocks = blocks_of(problem);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].response_rows.size(), 18U);
  EXPECT_EQ(blocks[1].response_rows, std::vector<Index>{2});
  EXPECT_EQ(blocks[1].feature_rows, std::vector<Index>{5});
  EXPECT_NEAR(blocks[0].share + blocks[1].share + blocks[2].share, 1, 1e-15);
}

TEST(Methods, known_pairs_stay_linked_whatever_they_cost) {
  Problem problem = identifiable(30, 22);
  problem.known = {{4, 11}, {9, 0}};
  const Matching matching = fit(problem, Linear{}, Robot{.starts = starting_at(identifiable_truth)}).match();
  ASSERT_EQ(matching.pairs.size(), 30U);
  EXPECT_EQ(matching.pairs[4].feature_row, 11);
  EXPECT_EQ(matching.pairs[9].feature_row, 0);
  EXPECT_NEAR(matching.pairs[9].probability, 1, 1e-9);
}

TEST(Methods, progress_can_stop_am_em_and_rs) {
  const Problem problem = hinted(sensing(100, 2, 0.5, 100, 21).problem);
  const Execution stopped{.progress = [](double, double) { return false; }};
  for (const Estimator& method : {Estimator(Am{}), Estimator(Em{}), Estimator(few_samples)}) {
    EXPECT_EQ(fit(problem, Linear{}, method, stopped).result().status, Status::stopped) << name_of(method);
  }
}

}  // namespace
}  // namespace unshuffle
