// What happens when the user, or the system, ends a run, or memory does.
#pragma once

namespace unshuffle::app {

/// From now on SIGINT, SIGTERM and SIGHUP (exit code 128 + signal) and memory that runs out in a parallel loop (4) lead
/// to one line on stderr and leave no unfinished file; a limit on the size of files is a write error, and standard
/// streams that were closed take nothing.
void leave_cleanly();

/// Where memory is limited (ulimit -v), keeps OpenBLAS from starting threads of its own, which may mean to begin anew,
/// and takes what our threads need before anything else does: OpenMP would end the program in its own words when it
/// cannot have them later. Without room for them, ends it in ours.
void prepare_for_limited_memory(char** argv);

}  // namespace unshuffle::app
