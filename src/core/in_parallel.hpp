// A loop over independent pieces of work on all threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "unshuffle/core/stop.hpp"

namespace unshuffle {

/// Calls work(k) for k < count. If several throw, the exception of the smallest k is rethrown at the end. With several
/// pieces, parallel loops inside them run serially, one thread per piece. Pieces not begun when the computation is told
/// to stop are skipped.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  // A single piece uses all threads. Inside a one-thread region each of its parallel loops would start and stop its own
  // threads, which can fail when memory is limited.
  if (count == 1) {
    work(std::size_t{0});
    return;
  }
  const std::atomic<bool>* stop = StopScope::current();
  std::vector<std::exception_ptr> failures(count);
  const int threads = static_cast<int>(std::clamp<std::size_t>(count, 1, std::size_t(omp_get_max_threads())));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::size_t k = 0; k < count; ++k) {
    try {
      const StopScope same(stop);
      stop_if_asked();
      work(k);
    } catch (...) {
      failures[k] = std::current_exception();
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace unshuffle
