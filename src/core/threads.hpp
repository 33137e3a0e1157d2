// How many threads may be asked for.
#pragma once

namespace unshuffle {

/// Throws InvalidInput when fewer than 0 threads are asked for, or more than any machine has use for; 0 stands for as
/// many as OpenMP would take, which OMP_NUM_THREADS decides. Throws SystemFailure when they are more than there are
/// processors and cannot be started: OpenMP would end the process by itself, with the exit code of a result that was
/// written.
void require_threads(int threads);

}  // namespace unshuffle
