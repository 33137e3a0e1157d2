#pragma once

#include <sys/resource.h>

namespace unshuffle {

/// Of this process so far.
[[nodiscard]] inline double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace unshuffle
