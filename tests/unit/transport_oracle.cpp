// Plans against solvers that share nothing with this library: tests/oracle/transport_oracle.py generated the numbers.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "oracle/transport_support.hpp"
#include "support/test_data.hpp"
#include "transport/line_transport.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using Json = nlohmann::json;
using testing::Worst;

const Json& oracle() {
  static const Json stored = [] {
    std::ifstream file(test_data("../oracle/transport_oracle.json"));
    return Json::parse(file);
  }();
  return stored;
}

Vector vector_of(const Json& numbers) {
  const auto values = numbers.get<std::vector<double>>();
  return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
}

Matrix matrix_of(const Json& numbers, Index rows) {
  const Vector all = vector_of(numbers);
  return all.reshaped<Eigen::RowMajor>(rows, all.size() / rows);
}

MarginalPolicy policy_of(const Json& side) {
  const auto kind = side.at("kind").get<std::string>();
  if (kind == "ball") return Ball{side.at("spread").get<double>(), side.at("entropy").get<double>()};
  if (kind == "kl") return KullbackLeibler{side.at("strength").get<double>()};
  if (kind == "free") return Free{};
  return Exact{};
}

std::string name_of(const Json& stored) {
  return stored.at("rows").at("kind").get<std::string>() + "/" + stored.at("columns").at("kind").get<std::string>() +
         " " + std::to_string(stored.at("n").get<int>()) + "x" + std::to_string(stored.at("m").get<int>());
}

void expect_agreement(const std::string& source, double bound) {
  Worst worst(source);
  int seen = 0;
  for (const Json& stored : oracle().at("plans")) {
    if (stored.at("source").get<std::string>() != source) continue;
    SCOPED_TRACE(name_of(stored));
    ++seen;
    const Matrix cost = matrix_of(stored.at("cost"), stored.at("n").get<Index>());
    const Matrix expected = matrix_of(stored.at("plan"), cost.rows());
    Solver solver({.epsilon = stored.at("epsilon").get<double>(),
                   .relative = false,
                   .rows = policy_of(stored.at("rows")),
                   .columns = policy_of(stored.at("columns")),
                   .tolerance = 1e-12});
    const Solution solution = solver.solve(cost, vector_of(stored.at("a")), vector_of(stored.at("b")));
    EXPECT_TRUE(solution.converged()) << solution.message();
    EXPECT_LE((solution.plan() - expected).lpNorm<1>(), bound);
    EXPECT_LE((solution.plan() - expected).rowwise().sum().lpNorm<1>(), bound);
    EXPECT_LE((solution.plan() - expected).colwise().sum().lpNorm<1>(), bound);
    EXPECT_NEAR(solution.transport_cost(), stored.at("transport_cost").get<double>(), bound);
    EXPECT_NEAR(solution.value(), stored.at("value").get<double>(), bound);
    worst.see((solution.plan() - expected).lpNorm<1>(), name_of(stored));
    worst.see(std::abs(solution.value() - stored.at("value").get<double>()), "value " + name_of(stored));
  }
  EXPECT_GE(seen, 12);
}

TEST(TransportOracle, PlansCostsAndValuesAgreeWithPotForExactAndKlMarginals) { expect_agreement("sinkhorn", 1e-9); }

TEST(TransportOracle, PlansCostsAndValuesAgreeWithAConvexSolverForEveryPolicyIncludingActiveAndInactiveBalls) {
  expect_agreement("kkt", 1e-9);
}

TEST(TransportOracle, TheStoredRobustProblemsHoldActiveAndInactiveBallsOnBothSides) {
  std::array<int, 2> active{}, inactive{};
  for (const Json& stored : oracle().at("plans"))
    for (std::size_t side : {0, 1}) {
      if (stored.at(side == 0 ? "rows" : "columns").at("kind").get<std::string>() != "ball") continue;
      ++(stored.at("ball_multipliers")[side].get<double>() > 0 ? active : inactive)[side];
    }
  EXPECT_GE(std::min({active[0], active[1], inactive[0], inactive[1]}), 1);
}

// 0 <= <C,Γ> - OT <= ε min(H(μ), H(ν)): the optimal plan at ε = 0 competes in the smoothed problem.
TEST(TransportOracle, TheScalarPathApproachesTheUnregularisedOptimumAsEpsilonFalls) {
  Worst worst("scalar limit, share of the bound used");
  for (const Json& stored : oracle().at("scalar_limits")) {
    const Vector t = vector_of(stored.at("t")), s = vector_of(stored.at("s"));
    const Vector a = vector_of(stored.at("a")), b = vector_of(stored.at("b"));
    const double optimum = stored.at("cost").get<double>();
    auto entropy = [](const Vector& w) { return -(w.array() * w.array().log()).sum(); };
    const double largest = std::pow(std::max(t.maxCoeff() - s.minCoeff(), s.maxCoeff() - t.minCoeff()), 2);
    for (double relative : {1e-2, 1e-4, 1e-6, 1e-7, 1e-8}) {
      const double epsilon = relative * largest;
      LineTransport line({});
      const LineReport report = line.solve(t, a, s, b, epsilon);
      EXPECT_TRUE(report.converged) << "epsilon " << relative << " n " << t.size() << ": " << report.message;
      const double bound = epsilon * std::min(entropy(a), entropy(b));
      EXPECT_GE(report.transport_cost, optimum - 1e-8);
      EXPECT_LE(report.transport_cost, optimum + bound + 1e-8) << "epsilon " << relative << " n " << t.size();
      worst.see((report.transport_cost - optimum) / (bound + 1e-8), "n " + std::to_string(t.size()));
    }
  }
}

// With free rows ζ has a closed form: Γ_ij = ν_j μ_i exp(-C_ij/ε) / Σ_k μ_k exp(-C_kj/ε).
TEST(TransportOracle, ASemiRelaxedPlanIsASoftNearestNeighbourOnEitherSide) {
  testing::Draw draw(7);
  for (int k = 0; k < 10; ++k) {
    const Index n = draw.integer(1, 12), m = draw.integer(1, 12);
    const Matrix cost = draw.normals(n, m).cwiseAbs2();
    const Vector a = draw.weights(n), b = draw.weights(m);
    const double epsilon = draw.log_uniform(0.03, 3);
    Matrix expected = (-cost.array() / epsilon).exp();
    expected = a.asDiagonal() * expected;
    const Vector column_sums = expected.colwise().sum();
    expected *= b.cwiseQuotient(column_sums).asDiagonal();
    Solver free_rows({.epsilon = epsilon, .relative = false, .rows = Free{}});
    EXPECT_LE((free_rows.solve(cost, a, b).plan() - expected).lpNorm<1>(), 1e-13);
    Solver free_columns({.epsilon = epsilon, .relative = false, .columns = Free{}});
    EXPECT_LE((free_columns.solve(cost.transpose(), b, a).plan() - expected.transpose()).lpNorm<1>(), 1e-13);
  }
}

}  // namespace
}  // namespace unshuffle::transport
