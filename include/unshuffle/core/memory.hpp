// Memory as the process sees it: what freed arrays cost, and what a limit leaves.
#pragma once

#include <cstddef>

#include "unshuffle/core/export.hpp"

namespace UNSHUFFLE_EXPORT unshuffle {

/// Freed memory stays with the process. Every evaluation frees and allocates arrays of the size of the data; glibc
/// gives such arrays back to the system each time and gets them again one page fault per 4 KiB, which is close to half
/// of a cold evaluation at 10⁷ rows. To be called by programs, first thing in main: it is not for a library to decide.
void keep_freed_memory();

/// Whether the address space of this process is limited (ulimit -v).
[[nodiscard]] bool memory_is_limited();

/// Whether that many bytes could be had now, without taking them.
[[nodiscard]] bool has_room_for(std::size_t bytes);

}  // namespace unshuffle
