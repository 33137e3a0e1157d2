// How a program that fits many times should treat freed memory.
#pragma once

#ifdef __GLIBC__
#include <malloc.h>

#include <limits>
#endif

namespace unshuffle {

/// Freed memory stays with the process. Every evaluation frees and allocates arrays of the size of the data; glibc
/// gives such arrays back to the system each time and gets them again one page fault per 4 KiB, which is close to half
/// of a cold evaluation at 10⁷ rows. To be called by programs, first thing in main: it is not for a library to decide.
inline void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace unshuffle
