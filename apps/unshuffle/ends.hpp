// Handling of interrupts, termination and lack of memory.
#pragma once

namespace unshuffle::app {

/// From now on SIGINT, SIGTERM and SIGHUP (exit code 128 + signal) and memory that runs out in a parallel loop (4) lead
/// to one line on stderr and leave no unfinished file; a limit on the size of files is a write error, and standard
/// streams that were closed take nothing.
void leave_cleanly();

/// When memory is limited (ulimit -v), keeps OpenBLAS from starting its own threads, which may require restarting the
/// program, and starts our threads before anything else allocates: OpenMP would otherwise abort with its own message
/// when it cannot start them later. If there is no room for them, exits with ours.
void prepare_for_limited_memory(char** argv);

}  // namespace unshuffle::app
