// Handling of interrupts, termination and lack of memory.
#pragma once

namespace unshuffle::app {

/// From now on SIGINT, SIGTERM and SIGHUP (exit code 128 + signal) and lack of memory in a parallel loop (4) print one
/// line on stderr and leave no unfinished file; exceeding the file size limit is a write error, and output to closed
/// standard streams is discarded.
void leave_cleanly();

/// When memory is limited (ulimit -v), keeps OpenBLAS from starting its own threads, which may require restarting the
/// program, and starts our threads before anything else allocates: OpenMP would otherwise abort with its own message
/// when it cannot start them later. If there is no room for them, exits with ours.
void prepare_for_limited_memory(char** argv);

}  // namespace unshuffle::app
