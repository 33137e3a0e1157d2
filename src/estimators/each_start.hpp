// Several starts, each taken to its end on its own, and the best of them.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "core/share_work.hpp"
#include "estimators/descent.hpp"
#include "estimators/method.hpp"

namespace unshuffle {

/// A start's end as text, and back to the same bits; nothing for one that was stopped on the way.
[[nodiscard]] std::optional<std::string> packed(const Descended& result);
[[nodiscard]] Descended unpacked(const std::string& text);

/// What the processes of a team share: the starts, each process working alone, or what every start has to compute.
enum class Shared { starts, work_of_a_start };

/// work(k, tick) for every start, on as many threads as there are; the first start runs even when progress says stop.
/// A start that ends before `ticks_each` counts as if it had used them up.
template <class Work>
std::vector<Descended> for_each_start(const std::vector<Start>& starts, double ticks_each, const FitOptions& options,
                                      const Work& work, Shared shared = Shared::starts) {
  const double total = ticks_each * double(starts.size());
  std::vector<Descended> results(starts.size());
  std::atomic<bool> stop{false};
  std::atomic<double> done{0};
  const auto advance = [&](double ticks) {
    const double now = done.fetch_add(ticks) + ticks;
    if (omp_get_thread_num() == 0 && options.progress && !options.progress(std::min(now, total), total)) stop = true;
    return !stop;
  };
  const auto run = [&](std::size_t k) {
    double left = ticks_each;
    const Tick tick = [&] {
      const double step = std::min(1.0, left);
      left -= step;
      return advance(step);
    };
    if (!stop || k == 0) {
      WorkKey key("start");
      key.add(double(static_cast<int>(options.method))).add(double(k)).add(starts[k].parameters);
      results[k] = finished_or(
          options, key, [&] { return work(int(k), tick); }, packed, unpacked);
    }
    (void)advance(left);
  };
  if (shared == Shared::starts)
    share_work(options, starts.size(), run);
  else  // all processes at the same start at the same time
    for (std::size_t k = 0; k < starts.size(); ++k) run(k);
  if (options.progress) (void)options.progress(total, total);
  return results;
}

/// Candidates ranked, traces joined. `trusted` first: a start that knows its own quality comes before those that do
/// not, because far from it the transport cost has lower but meaningless minima.
[[nodiscard]] Estimate best_of(std::vector<Descended> results, const std::vector<Start>& starts);

}  // namespace unshuffle
