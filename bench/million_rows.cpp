// A whole fit of a million rows beside std::sort in the same process. Prints a Markdown table. --quick: ten thousand
// rows.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "measure.hpp"
#include "unshuffle/core/memory.hpp"
#include "unshuffle/tables/simulate.hpp"
#include "unshuffle/unshuffle.hpp"

namespace {

using namespace unshuffle;

void run(Index rows) {
  const Simulation sample = simulate({.rows = rows, .dim_z = 5, .shuffle = 0.5, .snr = 100, .mean = 1});
  const double sort = measure::median_seconds(3, [&] {
    Vector copy = sample.problem.y.col(0);
    std::sort(copy.begin(), copy.end());
  });
  const Problem problem{.y = sample.problem.y, .z = sample.problem.z, .order = RowOrder::probably_linked};
  const Result fitted = fit(problem, Linear{}, Robot{}).result();
  const Course& course = fitted.course;
  fmt::print(
      "### A whole fit, {} rows\n\n"
      "`simulate sensing` with five features, half of the rows shuffled, signal to noise 100, mean 1; `fit --method "
      "robot --hint rows`, whose start is RANSAC on a subsample; without reading files.\n\n"
      "| std::sort of the responses | fit | fit / sort | evaluations | | coefficients off by at most | peak memory |\n"
      "|---|---|---|---|---|---|---|\n"
      "| {:.3g} s | {:.3g} s | {:.1f} | {} | {} | {:.1e} | {:.0f} MB |\n",
      rows, sort, course.seconds, course.seconds / sort, course.evaluations,
      fitted.status == Status::converged ? "converged" : "not converged",
      (fitted.parameters.tail(sample.coefficients.size()) - sample.coefficients).cwiseAbs().maxCoeff(),
      course.peak_memory_mb);
}

}  // namespace

int main(int argc, char** argv) try {
  keep_freed_memory();  // as the command line program does
  const bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
  if (argc > 1 && !quick) {
    fmt::print(stderr, "usage: {} [--quick]\n", argv[0]);
    return 2;
  }
  run(quick ? 10'000 : 1'000'000);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
