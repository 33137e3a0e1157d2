// A loop over independent pieces of work on all threads.
#pragma once

#include <exception>
#include <vector>

namespace unshuffle {

/// work(k) for k < count; what any of them throws is passed on. Parallel loops inside stay serial.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  std::vector<std::exception_ptr> failures(count);
#pragma omp parallel for schedule(dynamic, 1) if (count > 1)
  for (std::size_t k = 0; k < count; ++k) {
    try {
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
