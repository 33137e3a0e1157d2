// The example of the README, on a sample small enough to be done at once.
#include <cmath>
#include <cstdio>
#include <unshuffle/unshuffle.hpp>

int main() {
  const auto sample = unshuffle::simulate({.rows = 60, .dim_z = 2, .shuffle = 0.3, .noise = 0.01, .seed = 1});
  const unshuffle::Problem problem{
      .y = sample.problem.y, .z = sample.problem.z, .order = unshuffle::RowOrder::probably_linked};
  const unshuffle::Fitted fit = unshuffle::fit(problem, unshuffle::Linear{});
  std::puts(fit.summary().c_str());
  return fit.parameters().allFinite() && fit.parameters().size() == 3 ? 0 : 1;
}
