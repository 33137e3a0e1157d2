#include "core/lapack.hpp"

#include <lapack.h>
#include <omp.h>

#include <cstddef>
#include <mutex>
#include <new>

#include <Eigen/Core>

#include "unshuffle/core/memory.hpp"

// Declared weak here, which no header does, because another LAPACK may lack them.
extern "C" {
void openblas_set_num_threads(int threads) __attribute__((weak));
int openblas_get_num_threads() __attribute__((weak));
int openblas_get_parallel() __attribute__((weak));
}

namespace unshuffle::lapack {
namespace {

/// Eigen divides long sums by the number of threads that share a product, which would change their last digits. The
/// setting is that of the library's own instance of Eigen.
[[maybe_unused]] const bool products_are_serial = (Eigen::setNbThreads(1), true);

enum class Threading { none, own, openmp };

Threading threading() {
  if (openblas_set_num_threads == nullptr || openblas_get_num_threads == nullptr || openblas_get_parallel == nullptr)
    return Threading::none;
  constexpr int by_openmp = 2;  // OPENBLAS_OPENMP of OpenBLAS's cblas.h
  return openblas_get_parallel() == by_openmp ? Threading::openmp : Threading::own;
}

/// Counts the live OneThread objects of the process. The first saves the number of threads and the last restores it: if
/// each did so for itself, one going out of scope would restore threads during another's call, and the last might
/// restore the value one.
struct Holders {
  std::mutex mutex;
  int count = 0;
  int before = 0;
};

Holders& holders() {
  static Holders all;
  return all;
}

/// OpenBLAS allocates work space on each call and retries forever when a limit (ulimit -v) leaves none. When there is a
/// limit, check first.
void require_work_space() {
  static const bool limited = memory_is_limited();
  constexpr std::size_t enough = std::size_t{160} << 20U;
  if (limited && !has_room_for(enough)) throw std::bad_alloc();
}

}  // namespace

OneThread::OneThread() {
  switch (threading()) {
    case Threading::none:
      break;
    case Threading::openmp:  // it asks OpenMP, which keeps a number for every thread
      before_ = omp_get_max_threads();
      omp_set_num_threads(1);
      break;
    case Threading::own:
      const std::lock_guard lock(holders().mutex);
      if (holders().count++ > 0) break;
      holders().before = openblas_get_num_threads();
      openblas_set_num_threads(1);
  }
}

OneThread::~OneThread() {
  switch (threading()) {
    case Threading::none:
      break;
    case Threading::openmp:
      omp_set_num_threads(before_);
      break;
    case Threading::own:
      const std::lock_guard lock(holders().mutex);
      if (--holders().count == 0) openblas_set_num_threads(holders().before);
  }
}

bool band_cholesky(Matrix& band) {
  const lapack_int n = static_cast<lapack_int>(band.cols()), leading = static_cast<lapack_int>(band.rows()),
                   width = leading - 1;
  lapack_int info = 0;
  require_work_space();
  const OneThread here;
  LAPACK_dpbtrf("L", &n, &width, band.data(), &leading, &info);
  return info == 0;
}

void band_cholesky_solve(const Matrix& band, Matrix& b) {
  const lapack_int n = static_cast<lapack_int>(band.cols()), leading = static_cast<lapack_int>(band.rows()),
                   width = leading - 1, columns = static_cast<lapack_int>(b.cols());
  lapack_int info = 0;
  require_work_space();
  const OneThread here;
  LAPACK_dpbtrs("L", &n, &width, &columns, band.data(), &leading, b.data(), &n, &info);
}

bool cholesky(Matrix& a) {
  const lapack_int n = static_cast<lapack_int>(a.rows());
  lapack_int info = 0;
  require_work_space();
  const OneThread here;
  LAPACK_dpotrf("L", &n, a.data(), &n, &info);
  return info == 0;
}

void cholesky_solve(const Matrix& factor, Matrix& b) {
  const lapack_int n = static_cast<lapack_int>(factor.rows()), columns = static_cast<lapack_int>(b.cols());
  lapack_int info = 0;
  require_work_space();
  const OneThread here;
  LAPACK_dpotrs("L", &n, &columns, factor.data(), &n, b.data(), &n, &info);
}

}  // namespace unshuffle::lapack
