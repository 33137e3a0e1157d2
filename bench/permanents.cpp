// D, what the entropic plan leaves out of the log-permanent, exactly and as it is approximated: the table of
// docs/mathematics.md §5.6, and the measurements behind remainder_of_plan and rule_for.
#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.hpp"
#include "core/special.hpp"
#include "links/permanent.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {
namespace {

struct Design {
  Index outputs, rows;
  double noise;
};

double by_continuum(const Matrix& y, double epsilon) {
  Vector sorted = y.col(0);
  std::sort(sorted.begin(), sorted.end());
  const Index n = sorted.size(), cut = std::min<Index>(10, n / 10);
  const double range = sorted(n - 1 - cut) - sorted(cut);
  const double x =
      range * zeta(1.5) * std::numbers::sqrt2 / (4 * std::sqrt(std::numbers::pi)) / (double(n) * std::sqrt(epsilon));
  return double(n) * x / (1 + x);
}

/// Means over draws of D and of the approximations' errors, and their root mean squares.
void measure(const Design& design, int draws) {
  double exact = 0, line = 0, plan = 0, plan_squares = 0, line_squares = 0;
  for (int k = 0; k < draws; ++k) {
    RandomStream random(std::uint64_t(k) + 1, 0);
    const Index n = design.rows;
    const Matrix s = Matrix::NullaryExpr(n, design.outputs, [&] { return random.normal(); });
    const Matrix y = s + design.noise * Matrix::NullaryExpr(n, design.outputs, [&] { return random.normal(); });
    Matrix cost(n, n);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) cost(i, j) = (y.row(i) - s.row(j)).squaredNorm();
    const double epsilon = 2 * design.noise * design.noise;
    transport::SolverOptions options;
    options.epsilon = epsilon;
    options.relative = false;
    const Matrix gamma = transport::Solver(options).solve(cost).plan();
    const double d = sum_over_links((double(n) * gamma).cwiseMax(1e-300).array().log().matrix()).log_mean +
                     double(n) * std::log(double(n));
    const double of_plan = remainder_of_plan(gamma).value - d, of_line = by_continuum(y, epsilon) - d;
    exact += d / draws;
    plan += of_plan / draws;
    line += of_line / draws;
    plan_squares += of_plan * of_plan / draws;
    line_squares += of_line * of_line / draws;
  }
  fmt::print("{:>7} {:>5} {:>6} {:>9.3f} {:>9.3f} {:>6.3f}", design.outputs, design.rows, design.noise, exact, plan,
             std::sqrt(plan_squares));
  if (design.outputs == 1) fmt::print(" {:>9.3f} {:>6.3f}", line, std::sqrt(line_squares));
  fmt::print("\n");
}

}  // namespace
}  // namespace unshuffle

int main() {
  using namespace unshuffle;
  fmt::print("outputs  rows  noise   exact D   by plan: error, rms   on a line: error, rms\n");
  for (const Index outputs : {1, 2, 3})
    for (const Index rows : {5, 8, 13, 16})
      for (const double noise : {1.0, 0.5, 0.2, 0.1, 0.05}) measure({outputs, rows, noise}, rows > 13 ? 12 : 40);
}
