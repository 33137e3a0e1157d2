// Memory of the process: keeping freed arrays, and limits.
#pragma once

#include <cstddef>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// Keeps freed memory in the process. Every evaluation frees and allocates arrays of the size of the data; glibc
/// returns such arrays to the system each time and gets them back at one page fault per 4 KiB, which is close to half
/// of a cold evaluation at 10⁷ rows. Programs call this first in main; a library should not decide it.
void keep_freed_memory();

/// Whether the address space of this process is limited (ulimit -v).
[[nodiscard]] bool memory_is_limited();

/// Whether that many bytes could be allocated now; allocates nothing.
[[nodiscard]] bool has_room_for(std::size_t bytes);

}  // namespace unshuffle
