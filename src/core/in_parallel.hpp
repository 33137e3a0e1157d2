// A loop over independent pieces of work on all threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "unshuffle/core/stop.hpp"

namespace unshuffle {

/// work(k) for k < count; of what they throw, that of the smallest k is passed on in the end. Parallel loops inside
/// stay serial where there are several pieces, so each has one thread to itself. Pieces that were not begun when the
/// computation was told to stop are not begun any more.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  // A single piece has all threads to itself. In a region of one thread its parallel loops would each start threads of
  // their own and end them again, which may fail where memory is limited.
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
