// Random transport problems over sizes, scales from 1e-150 to 1e150, ties, degenerate costs, ten decades of ε, every
// pair of policies, on both backends. An answer that calls itself converged must be finite and pass the optimality
// conditions as tests/oracle/certificate.hpp computes them; an answer that does not must say why.
//
// Usage: torture [PROBLEMS [SEED]]. Prints one line per offence and a table; exit code 1 when there was an offence.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <map>

#include "oracle/certificate.hpp"
#include "oracle/transport_support.hpp"
#include "transport/line_transport.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;

/// Positions on a line, whose squared differences are the cost, or any cost.
struct Problem {
  bool line;
  Vector t, s;
  Matrix cost;
  Vector a, b;
  double epsilon;  ///< In the unit of the cost.
  MarginalPolicy rows, columns;
  std::string name;
};

struct Answer {
  bool converged;
  std::string message;
  Matrix coupling;
  Vector row_potential, column_potential;  ///< In units of ε.
  double value, transport_cost;
};

Index size(Draw& draw) {
  if (draw.chance(0.1)) return 1;
  return draw.chance(0.05) ? draw.integer(41, 200) : draw.integer(2, 40);
}

Vector positions(Draw& draw, Index count) {
  Vector x = draw.normals(count);
  switch (draw.integer(0, 5)) {
    case 0:
      x = (2 * x).array().round();
      break;  // ties
    case 1:
      x.setConstant(draw.normal());
      break;  // all in one place
    case 2:
      x = x.array() * x.array().square();
      break;  // heavy tails
    case 3:
      x.head(count / 2).array() += 1e3;
      break;  // two clusters far apart
    case 4:
      x[draw.integer(0, count - 1)] *= 1e6;
      break;  // an outlier
    default:
      break;
  }
  return x;
}

Matrix any_cost(Draw& draw, Index n, Index m) {
  Matrix cost = draw.normals(n, m).cwiseAbs2();
  switch (draw.integer(0, 6)) {
    case 0:
      cost = (2 * cost).array().round();
      break;
    case 1:
      cost.setConstant(draw.chance(0.5) ? 0 : 1.5);
      break;
    case 2:
      for (Index i = 1; i < n; i += 2) cost.row(i) = cost.row(0);
      break;
    case 3:
      cost.row(draw.integer(0, n - 1)).array() += 1e3;
      break;
    case 4:
      cost = cost.array().cube();
      break;
    case 5:
      cost.array() -= 0.5;
      break;  // negative costs are costs too
    default:
      break;
  }
  return cost;
}

Problem random_problem(Draw& draw, int number) {
  Problem one;
  one.line = number % 2 == 1;
  const Index n = size(draw), m = size(draw);
  if (one.line) {
    const double scale = draw.log_uniform(1e-75, 1e75);
    one.t = scale * positions(draw, n);
    one.s = scale * positions(draw, m);
    one.cost = (one.t.replicate(1, m).rowwise() - one.s.transpose()).array().square();
  } else {
    one.cost = draw.log_uniform(1e-150, 1e150) * any_cost(draw, n, m);
  }
  one.a = draw.chance(0.5) ? draw.weights(n) : testing::equal_weights(n);
  one.b = draw.chance(0.5) ? draw.weights(m) : testing::equal_weights(m);
  const double largest = one.cost.cwiseAbs().maxCoeff() > 0 ? one.cost.cwiseAbs().maxCoeff() : 1;
  const double relative = draw.log_uniform(1e-8, 1e2);
  one.epsilon = relative * largest;
  const auto pairs = testing::policy_pairs(largest);
  std::tie(one.rows, one.columns) = pairs[std::size_t(draw.integer(0, Index(pairs.size()) - 1))];
  one.name = fmt::format("problem {}: {}, {} x {}, {}/{}, largest cost {:.2e}, epsilon {:.2e} of it", number,
                         one.line ? "line" : "dense", n, m, testing::name_of(one.rows), testing::name_of(one.columns),
                         largest, relative);
  return one;
}

Answer on_the_line(const Problem& one) {
  LineTransport line({.row_policy = one.rows, .column_policy = one.columns});
  const LineReport report = line.solve(one.t, one.a, one.s, one.b, one.epsilon);
  const Vector u = line.potential(Side::response), v = line.potential(Side::feature);
  const Matrix exponent = ((-one.cost / one.epsilon).colwise() + u).rowwise() + v.transpose();
  return {report.converged,
          report.message,
          one.a.asDiagonal() * exponent.array().exp().matrix() * one.b.asDiagonal(),
          u,
          v,
          report.value,
          report.transport_cost};
}

Answer by_the_matrix(const Problem& one) {
  Solver solver({.epsilon = one.epsilon, .relative = false, .rows = one.rows, .columns = one.columns});
  const Solution solution = solver.solve(one.cost, one.a, one.b);
  return {solution.converged(),
          solution.message(),
          solution.plan(),
          solution.row_potential() / one.epsilon,
          solution.column_potential() / one.epsilon,
          solution.value(),
          solution.transport_cost()};
}

/// What is wrong with the answer; empty when nothing is.
std::string offence(const Problem& one, const Answer& answer) {
  if (!answer.converged) return answer.message.empty() ? "not converged, and does not say why" : "";
  if (!answer.coupling.allFinite() || !std::isfinite(answer.value) || !std::isfinite(answer.transport_cost))
    return "converged to what is not finite";
  const double tolerance = 1e-9, rounding = 4e-16 * (1 + one.cost.cwiseAbs().maxCoeff() / one.epsilon);
  const double mass = std::max(1.0, answer.coupling.sum());
  const Matrix exponent =
      ((-one.cost / one.epsilon).colwise() + answer.row_potential).rowwise() + answer.column_potential.transpose();
  const Matrix expected = one.a.asDiagonal() * exponent.array().exp().matrix() * one.b.asDiagonal();
  const double formula = (answer.coupling - expected).lpNorm<1>();
  if (!(formula <= mass * (1e-12 + 50 * rounding)))
    return fmt::format("the plan is not that of its potentials: {:.2e}", formula);
  const double error = testing::policy_error(one.rows, one.a, answer.coupling.rowwise().sum(),
                                             answer.row_potential * one.epsilon, one.epsilon) +
                       testing::policy_error(one.columns, one.b, answer.coupling.colwise().sum(),
                                             answer.column_potential * one.epsilon, one.epsilon);
  const double accepted = mass * (4 * tolerance + 50 * rounding + (one.line ? 1e-9 : 0));
  if (!(error <= accepted))
    return fmt::format("converged with a marginal error of {:.2e}; {:.2e} is accepted", error, accepted);
  const double direct = answer.coupling.cwiseProduct(one.cost).sum();
  const double size = mass * (one.cost.cwiseAbs().maxCoeff() + one.epsilon);
  if (!(std::abs(answer.transport_cost - direct) <= (1e-8 + 10 * rounding) * size))
    return fmt::format("transport cost {} of a plan that costs {}", answer.transport_cost, direct);
  return "";
}

int torture(int count, std::uint64_t seed) {
  Draw draw(seed);
  int converged[2] = {0, 0}, open[2] = {0, 0}, offences = 0;
  std::map<std::string, int> reasons;
  for (int number = 0; number < count; ++number) {
    const Problem one = random_problem(draw, number);
    std::string wrong;
    try {
      const Answer answer = one.line ? on_the_line(one) : by_the_matrix(one);
      ++(answer.converged ? converged : open)[one.line];
      if (!answer.converged) ++reasons[answer.message];
      wrong = offence(one, answer);
    } catch (const std::exception& error) {
      wrong = fmt::format("threw: {}", error.what());
    }
    if (wrong.empty()) continue;
    ++offences;
    fmt::print("{}: {}\n", one.name, wrong);
  }
  fmt::print("| backend | problems | converged and certified | not converged, with a reason |\n|---|---|---|---|\n");
  for (const bool line : {false, true})
    fmt::print("| {} | {} | {} | {} |\n", line ? "line" : "dense", converged[line] + open[line], converged[line],
               open[line]);
  for (const auto& [reason, times] : reasons) fmt::print("{} times: {}\n", times, reason);
  fmt::print("offences: {}\n", offences);
  return offences == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unshuffle::transport

int main(int argc, char** argv) {
  return unshuffle::transport::torture(argc > 1 ? std::atoi(argv[1]) : 400,
                                       argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
