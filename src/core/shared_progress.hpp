// Progress of starts that run concurrently.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <functional>

namespace unshuffle {

/// Counts ticks from any thread, reports them from the first thread only, and remembers a request to stop.
class SharedProgress {
 public:
  using Say = std::function<bool(double, double)>;
  /// The ticks span `begin` to `end` of the reported `whole`.
  struct Stretch {
    double begin, end, whole;
  };

  SharedProgress(const Say& say, double ticks, const Stretch& stretch, bool stopped = false)
      : say_(say), ticks_(ticks), stretch_(stretch), stopped_(stopped) {}

  /// Whether to continue.
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
