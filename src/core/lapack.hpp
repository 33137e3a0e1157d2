// The LAPACK routines the solvers use, with Eigen matrices and a bool for "positive definite".
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::lapack {

/// While one lives, OpenBLAS works on one thread; when the last one is gone it has as many as before. The library
/// threads at a higher level, where the order of summation does not depend on the number of threads. Every function
/// below holds one during its call.
///
/// OpenBLAS that threads by itself keeps one number for the whole process, so what other threads ask of it meanwhile
/// runs on one thread too: slower, not wrong.
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
