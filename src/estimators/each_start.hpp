// Several starts, each run independently, and the best of them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/share_work.hpp"
#include "core/shared_progress.hpp"
#include "estimators/descent.hpp"
#include "estimators/estimate.hpp"

namespace unshuffle {

/// The result of a start as text and back, bit for bit; nothing for one that was stopped.
[[nodiscard]] std::optional<std::string> packed(const Descended& result);
[[nodiscard]] Descended unpacked(const std::string& text);

/// What the processes of a team share: the starts, each process working alone, or the computation within every start.
enum class Shared { starts, work_of_a_start };

struct EachStart {
  const char* estimator;  ///< Distinguishes its finished work from that of others in one checkpoint.
  const std::vector<Start>& starts;
  double ticks_each;  ///< A start that ends early counts as if it had used them up.
  Shared shared = Shared::starts;
};

/// The start that is being worked on.
struct StartAt {
  const Start& start;
  int index;
  const Tick& tick;
};

/// Calls work(StartAt) for every start, on all threads; the first start runs even if progress requests a stop.
template <class Work>
std::vector<Descended> for_each_start(const EachStart& each, const Run& run, const Work& work) {
  const std::size_t count = each.starts.size();
  const double total = each.ticks_each * double(count);
  std::vector<Descended> results(count);
  SharedProgress progress(run.progress, total, {0, total, total});
  const auto follow = [&](std::size_t k) {
    double left = each.ticks_each;
    const Tick tick = [&] {
      const double step = std::min(1.0, left);
      left -= step;
      return progress.advance(step);
    };
    if (!progress.stopped() || k == 0) {
      WorkKey key("start");
      key.add(std::string(each.estimator)).add(double(k)).add(each.starts[k].parameters);
      results[k] = finished_or(
          run, key,
          [&] {
            return work(StartAt{each.starts[k], int(k), tick});
          },
          packed, unpacked);
    }
    (void)progress.advance(left);
  };
  if (each.shared == Shared::starts)
    share_work(run, count, follow);
  else  // all processes at the same start at the same time
    for (std::size_t k = 0; k < count; ++k) follow(k);
  if (run.progress) (void)run.progress(total, total);
  return results;
}

/// Candidates ranked, traces joined. `trusted` first: a start of known uncertainty comes before the others, because far
/// from it the transport cost has lower but meaningless minima.
[[nodiscard]] Estimate best_of(std::vector<Descended> results, const std::vector<Start>& starts);

}  // namespace unshuffle
