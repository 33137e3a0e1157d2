// Progress of starts that are followed at the same time.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <functional>

namespace unshuffle {

/// Counts ticks from any thread, says so from the first one only, and remembers when the answer was to stop.
class SharedProgress {
 public:
  using Say = std::function<bool(double, double)>;
  /// The ticks go from `begin` to `end` of the `whole` that is said.
  struct Stretch {
    double begin, end, whole;
  };

  SharedProgress(const Say& say, double ticks, const Stretch& stretch, bool stopped = false)
      : say_(say), ticks_(ticks), stretch_(stretch), stopped_(stopped) {}

  /// Whether to go on.
  bool advance(double ticks) {
    const double now = done_.fetch_add(ticks) + ticks;
    const double share = std::min(1.0, now / ticks_);
    if (say_ && omp_get_thread_num() == 0 &&
        !say_(stretch_.begin + share * (stretch_.end - stretch_.begin), stretch_.whole))
      stopped_ = true;
    return !stopped_;
  }

  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  const Say& say_;
  double ticks_;
  Stretch stretch_;
  std::atomic<bool> stopped_;
  std::atomic<double> done_{0};
};

}  // namespace unshuffle
