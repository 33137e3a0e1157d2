// What the clouds backend adds outside of transport: assignment among candidates, matching, and the choice of backend.
#include <gtest/gtest.h>
#include <omp.h>

#include "objective/backend.hpp"
#include "oracle/transport_support.hpp"
#include "support/complaint.hpp"
#include "transport/cloud_transport.hpp"
#include "unshuffle/links/assignment.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {
namespace {

using transport::testing::Draw;

TEST(Candidates, are_assigned_as_in_a_matrix_with_the_other_pairs_forbidden) {
  Draw draw(2611);
  for (int round = 0; round < 200; ++round) {
    const Index n = draw.integer(1, 25), m = draw.integer(1, 25);
    Matrix cost = Matrix::Constant(n, m, std::numeric_limits<double>::infinity());
    std::vector<PossiblePair> candidates;
    const Index shift = draw.integer(0, m - 1);
    const double filled = draw.uniform(0.05, 1);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < m; ++j) {
        const bool in_feasible_matching = n <= m ? j == (i + shift) % m : i == (j + shift) % n;
        if (!in_feasible_matching && !draw.chance(filled)) continue;
        cost(i, j) = draw.normal();
        candidates.push_back({i, j, cost(i, j)});
      }
    const std::vector<Index> column_of = assign_among(candidates, n, m);
    double total = 0;
    Index pairs = 0;
    for (Index i = 0; i < n; ++i)
      if (column_of[std::size_t(i)] >= 0) {
        total += cost(i, column_of[std::size_t(i)]);
        ++pairs;
      }
    EXPECT_EQ(pairs, std::min(n, m));
    EXPECT_NEAR(total, assign(cost).cost, 1e-10);
  }
}

Problem two_responses(Draw& draw, Index n, Index m, bool grouped) {
  Problem problem;
  problem.z = draw.normals(m, 2);
  problem.y = 0.1 * draw.normals(n, 2);
  for (Index i = 0; i < n; ++i)
    problem.y.row(i) += 2 * problem.z.row((i * 7) % m) + Eigen::RowVector2d(0, 3 * problem.z((i * 7) % m, 0));
  for (Index i = 0; grouped && i < n; ++i) problem.response_groups.push_back(i % 2);
  for (Index j = 0; grouped && j < m; ++j) problem.feature_groups.push_back(j % 2);
  return completed(problem);
}

TEST(CloudsBackend, makes_the_same_pairs_as_the_dense_one) {
  Draw draw(2612);
  for (const bool grouped : {false, true})
    for (const Index m : {120, 140}) {
      const Problem problem = two_responses(draw, 120, m, grouped);
      const auto model = Linear().bound_to(problem);
      const Vector w = draw.normals(model->parameters());
      std::vector<Matching> found;
      for (const Backend backend : {Backend::dense, Backend::clouds}) {
        EvaluatorOptions options;
        options.epsilon = {.value = 1e-3};
        options.backend = backend;
        if (m != 120) options.feature_side = transport::Sampled{};
        Evaluator evaluator(problem, *model, options);
        found.push_back(match(evaluator, problem, *model, w));
      }
      ASSERT_EQ(found[0].pairs.size(), found[1].pairs.size());
      for (std::size_t k = 0; k < found[0].pairs.size(); ++k) {
        EXPECT_EQ(found[0].pairs[k].feature_row, found[1].pairs[k].feature_row);
        EXPECT_NEAR(found[0].pairs[k].probability, found[1].pairs[k].probability, 1e-6);
      }
    }
}

/// Memory full of holes, so that arrays lie elsewhere than before.
class Holes {
 public:
  explicit Holes(Draw& draw) {
    for (int k = 0; k < 300; ++k) taken_.push_back(std::make_unique<char[]>(std::size_t(draw.integer(1, 4000))));
    for (std::size_t k = 0; k < taken_.size(); k += 2) taken_[k].reset();
  }

 private:
  std::vector<std::unique_ptr<char[]>> taken_;
};

/// With kept tiles and without, with a factor of large entries and with groups of boxes.
TEST(CloudsBackend, gives_the_same_bits_on_any_number_of_threads_wherever_arrays_lie) {
  Draw draw(2614);
  const int before = omp_get_max_threads();
  for (const auto& [n, epsilon] : {std::pair<Index, double>{90, 0.1}, {700, 0.5}, {700, 1e-3}}) {
    const Matrix t = draw.normals(n, 2), s = draw.normals(n + 30, 2);
    const Vector a = draw.weights(n), b = draw.weights(n + 30);
    std::vector<Matrix> forces;
    for (const int threads : {1, 3, 1, 3}) {
      const Holes holes(draw);
      omp_set_num_threads(threads);
      transport::CloudTransport clouds({.policies = {}, .response_cost = {}});
      (void)clouds.solve({t, a}, {s, b}, epsilon);
      forces.push_back(clouds.gradient(Side::feature, Objective::transport));
    }
    for (const Matrix& other : forces) EXPECT_EQ(other, forces[0]) << n << " points, epsilon " << epsilon;
  }
  omp_set_num_threads(before);
}

TEST(CloudsBackend, is_chosen_when_asked_for_or_where_it_pays) {
  Draw draw(2613);
  const auto chosen = [&](Index n, Index outputs, Backend wanted) {
    Problem problem;
    problem.y = Matrix::Random(n, outputs);
    problem.z = Matrix::Random(n, 2);
    problem = completed(problem);
    return backend_for(problem, *Linear().bound_to(problem), wanted);
  };
  EXPECT_EQ(chosen(300, 2, Backend::automatic), Backend::dense);
  EXPECT_EQ(chosen(300, 2, Backend::clouds), Backend::clouds);
  EXPECT_EQ(chosen(2999, 3, Backend::automatic), Backend::dense);
  EXPECT_EQ(chosen(3001, 3, Backend::automatic), Backend::clouds);
  EXPECT_EQ(chosen(3001, 3, Backend::dense), Backend::dense);
  EXPECT_EQ(chosen(3001, 4, Backend::automatic), Backend::dense);
  EXPECT_EQ(chosen(20001, 4, Backend::automatic), Backend::clouds);
  EXPECT_EQ(chosen(300, 1, Backend::automatic), Backend::sorted);
  EXPECT_EQ(
      complaint([&] { (void)chosen(300, 9, Backend::clouds); }),
      "the clouds backend needs at most 8 response columns, an additive model, and neither prior weights nor soft "
      "groups");
}

}  // namespace
}  // namespace unshuffle
