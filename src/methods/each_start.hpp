// Several starts, each taken to its end on its own, and the best of them.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "fit/descent.hpp"
#include "in_parallel.hpp"
#include "methods/method.hpp"

namespace unshuffle {

/// work(k, tick) for k < count, on as many threads as there are; the first start runs even when progress says stop.
/// `total` is the number of ticks at most; a start that ends early counts as if it had used up its share of them.
template <class Work>
std::vector<Descended> for_each_start(int count, double total, const FitOptions& options, const Work& work) {
  std::vector<Descended> results(static_cast<std::size_t>(count));
  std::atomic<bool> stop{false};
  std::atomic<double> done{0};
  const double share = total / count;
  const auto advance = [&](double ticks) {
    const double now = done.fetch_add(ticks) + ticks;
    if (omp_get_thread_num() == 0 && options.progress && !options.progress(std::min(now, total), total)) stop = true;
    return !stop;
  };
  in_parallel(results.size(), [&](std::size_t k) {
    double left = share;
    const Tick tick = [&] {
      const double step = std::min(1.0, left);
      left -= step;
      return advance(step);
    };
    if (!stop || k == 0) results[k] = work(int(k), tick);
    (void)advance(left);
  });
  if (options.progress) (void)options.progress(total, total);
  return results;
}

/// Candidates ranked, traces joined. `trusted` first: a start that knows its own quality comes before those that do
/// not, because far from it the transport cost has lower but meaningless minima.
[[nodiscard]] Estimate best_of(std::vector<Descended> results, const std::vector<Start>& starts);

}  // namespace unshuffle
