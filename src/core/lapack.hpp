// The LAPACK routines the solvers use, with Eigen matrices and a bool for "positive definite".
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::lapack {

/// Cholesky factor in place; the matrix is in lower band storage, (bandwidth + 1) × n.
[[nodiscard]] bool band_cholesky(Matrix& band);
void band_cholesky_solve(const Matrix& band, Matrix& b);

/// Cholesky factor of the lower triangle in place.
[[nodiscard]] bool cholesky(Matrix& a);
void cholesky_solve(const Matrix& factor, Matrix& b);

/// The library threads at a higher level, where the order of summation does not depend on the number of threads.
void use_one_thread();

}  // namespace unshuffle::lapack
