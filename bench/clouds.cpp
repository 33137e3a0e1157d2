// Transport between clouds of points: processor time and peak memory of a solve, its gradient and a warm solve, as the
// number of points grows.
//
// Usage: bench_clouds DIMENSION EPSILON TOLERANCE POINTS...
// Uniform points in the unit cube, equally many on both sides; EPSILON is relative to the largest possible cost. For
// up to 2000 points the dense solver is set beside it.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <random>

#include "measure.hpp"
#include "transport/cloud_transport.hpp"
#include "unshuffle/transport/solver.hpp"

namespace {

using namespace unshuffle;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double processor_seconds_of(const Work& work) {
  const double begin = processor_seconds();
  work();
  return processor_seconds() - begin;
}

Matrix uniform_points(Index n, Index dimension, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform;
  return Matrix::NullaryExpr(n, dimension, [&] { return uniform(engine); });
}

struct Row {
  double solve, gradient, warm, marginal_error, cost;
};

Row by_clouds(Index n, Index dimension, double epsilon, double tolerance) {
  const Matrix t = uniform_points(n, dimension, 1), s = uniform_points(n, dimension, 2);
  const Matrix moved = s.array() + 1e-3 * s.array().square();
  const Vector weights = Vector::Constant(n, 1 / static_cast<double>(n));
  transport::CloudTransport transport(
      {.policies = {}, .response_cost = {}, .tolerance = tolerance, .accuracy = 0.1 * tolerance});
  transport::CloudReport report;
  Row row{};
  row.solve = processor_seconds_of([&] { report = transport.solve({t, weights}, {s, weights}, epsilon); });
  row.gradient = processor_seconds_of([&] { (void)transport.gradient(Side::feature, Objective::transport); });
  row.marginal_error = report.marginal_error;
  row.cost = report.transport_cost;
  row.warm = processor_seconds_of([&] { (void)transport.solve({t, weights}, {moved, weights}, epsilon); });
  return row;
}

void print_dense(Index n, Index dimension, double epsilon, double tolerance) {
  const Matrix t = uniform_points(n, dimension, 1), s = uniform_points(n, dimension, 2);
  double cost = 0, gradient = 0;
  const double solve = processor_seconds_of([&] {
    Matrix costs(n, n);
    for (Index j = 0; j < n; ++j) costs.col(j) = (t.rowwise() - s.row(j)).rowwise().squaredNorm();
    const auto solution =
        transport::solve(std::move(costs), {.epsilon = epsilon, .relative = false, .tolerance = tolerance});
    cost = solution.transport_cost();
    gradient = processor_seconds_of([&] { (void)solution.gradient(); });
  });
  fmt::print("{:>9} dense  {:9.3f} {:9.3f} {:>9} {:>10} {:>9} {:.10g}\n", n, solve - gradient, gradient, "", "", "",
             cost);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: {} DIMENSION EPSILON TOLERANCE POINTS...\n", argv[0]);
    return 2;
  }
  const Index dimension = std::atol(argv[1]);
  const double epsilon = std::atof(argv[2]) * static_cast<double>(dimension), tolerance = std::atof(argv[3]);
  fmt::print("{:>9} {:6} {:>9} {:>9} {:>9} {:>10} {:>9} cost\n", "points", "", "solve s", "gradient", "warm s", "error",
             "MB");
  for (int k = 4; k < argc; ++k) {
    const Index n = std::atol(argv[k]);
    const auto [row, megabytes] = measure::in_own_process([&] { return by_clouds(n, dimension, epsilon, tolerance); });
    fmt::print("{:>9} clouds {:9.3f} {:9.3f} {:9.3f} {:10.2e} {:9.0f} {:.10g}\n", n, row.solve, row.gradient, row.warm,
               row.marginal_error, megabytes, row.cost);
    if (n > 2000) continue;
    (void)measure::in_own_process([&] {
      print_dense(n, dimension, epsilon, tolerance);
      std::fflush(stdout);
      return 0;
    });
  }
}
