#include "core/lapack.hpp"

#include <cstddef>
#include <new>

#include "unshuffle/core/memory.hpp"

extern "C" {
void dpbtrf_(const char* uplo, const int* n, const int* kd, double* ab, const int* ldab, int* info);
void dpbtrs_(const char* uplo, const int* n, const int* kd, const int* nrhs, const double* ab, const int* ldab,
             double* b, const int* ldb, int* info);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);
void dpotrs_(const char* uplo, const int* n, const int* nrhs, const double* a, const int* lda, double* b,
             const int* ldb, int* info);
void openblas_set_num_threads(int threads) __attribute__((weak));
}

namespace unshuffle::lapack {
namespace {

/// OpenBLAS takes work space when it is called, and where a limit (ulimit -v) leaves none it tries forever. Where there
/// is a limit, look first.
void require_work_space() {
  static const bool limited = memory_is_limited();
  constexpr std::size_t enough = std::size_t{160} << 20U;
  if (limited && !has_room_for(enough)) throw std::bad_alloc();
}

}  // namespace

void use_one_thread() {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}

bool band_cholesky(Matrix& band) {
  const int n = static_cast<int>(band.cols()), leading = static_cast<int>(band.rows()), width = leading - 1;
  int info = 0;
  require_work_space();
  dpbtrf_("L", &n, &width, band.data(), &leading, &info);
  return info == 0;
}

void band_cholesky_solve(const Matrix& band, Matrix& b) {
  const int n = static_cast<int>(band.cols()), leading = static_cast<int>(band.rows()), width = leading - 1;
  const int columns = static_cast<int>(b.cols());
  int info = 0;
  require_work_space();
  dpbtrs_("L", &n, &width, &columns, band.data(), &leading, b.data(), &n, &info);
}

bool cholesky(Matrix& a) {
  const int n = static_cast<int>(a.rows());
  int info = 0;
  require_work_space();
  dpotrf_("L", &n, a.data(), &n, &info);
  return info == 0;
}

void cholesky_solve(const Matrix& factor, Matrix& b) {
  const int n = static_cast<int>(factor.rows()), columns = static_cast<int>(b.cols());
  int info = 0;
  require_work_space();
  dpotrs_("L", &n, &columns, factor.data(), &n, b.data(), &n, &info);
}

}  // namespace unshuffle::lapack
