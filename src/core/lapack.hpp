// The LAPACK routines the solvers use, with Eigen matrices and a bool for "positive definite".
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::lapack {

/// While any instance exists, OpenBLAS uses one thread; destroying the last one restores the previous number. The
/// library parallelises at a higher level, where the order of summation does not depend on the number of threads. Every
/// function below holds an instance during its call.
///
/// OpenBLAS built with its own threading keeps one setting per process, so calls from other threads meanwhile also run
/// on one thread: slower, but correct.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = 0;  // OpenMP's number in this thread, where OpenBLAS threads by OpenMP
};

/// Cholesky factor in place; the matrix is in lower band storage, (bandwidth + 1) × n.
[[nodiscard]] bool band_cholesky(Matrix& band);
void band_cholesky_solve(const Matrix& band, Matrix& b);

/// Cholesky factor of the lower triangle in place.
[[nodiscard]] bool cholesky(Matrix& a);
void cholesky_solve(const Matrix& factor, Matrix& b);

}  // namespace unshuffle::lapack
