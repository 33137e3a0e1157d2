// The dense transport solver on one cost matrix, for bench/transport_peers.py, which sets other programs beside it.
//
// Usage: bench_transport_peers COST ROWS COLUMNS EPSILON TOLERANCE REPEATS
// COST holds the matrix as doubles, column after column; EPSILON is relative to the largest cost. Prints processor
// time in seconds of the solve and of the solve with gradient (the least of the repeats), marginal error, transport
// cost, and numbers of Sinkhorn and Newton steps.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <utility>

#include "unshuffle/transport/solver.hpp"

namespace {

using unshuffle::Index;
using unshuffle::Matrix;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Matrix read_cost(const char* path, Index rows, Index columns) {
  Matrix cost(rows, columns);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(cost.data()), static_cast<std::streamsize>(cost.size() * sizeof(double))))
    throw std::runtime_error(fmt::format("{}: {} doubles were expected", path, cost.size()));
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "usage: {} COST ROWS COLUMNS EPSILON TOLERANCE REPEATS\n", argv[0]);
    return 2;
  }
  const Matrix cost = read_cost(argv[1], std::atol(argv[2]), std::atol(argv[3]));
  const unshuffle::transport::SolverOptions options{.epsilon = std::atof(argv[4]), .tolerance = std::atof(argv[5])};
  double solve = std::numeric_limits<double>::infinity(), with_gradient = solve, seen = 0;
  for (int repeat = 0; repeat < std::atoi(argv[6]); ++repeat) {
    Matrix own = cost;  // moved in, as other programs also leave the cost where it is
    const double begin = processor_seconds();
    const auto solution = unshuffle::transport::solve(std::move(own), options);
    solve = std::min(solve, processor_seconds() - begin);
    seen += solution.gradient()(0, 0);
    with_gradient = std::min(with_gradient, processor_seconds() - begin);
    if (repeat == 0)
      fmt::print("{:.3e} {:.12g} {} {} ", solution.marginal_error(), solution.transport_cost(),
                 solution.sinkhorn_steps(), solution.newton_steps());
  }
  fmt::print("{:.6g} {:.6g} {}\n", solve, with_gradient, seen == seen ? "finite" : "not finite");
}
