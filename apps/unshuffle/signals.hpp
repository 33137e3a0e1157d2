// What happens when the user, or the system, ends a run, or memory does.
#pragma once

namespace unshuffle::app {

/// From now on SIGINT and SIGTERM (exit code 128 + signal) and memory that runs out in a parallel loop (4) lead to one
/// line on stderr and leave no unfinished file.
void leave_cleanly();

}  // namespace unshuffle::app
