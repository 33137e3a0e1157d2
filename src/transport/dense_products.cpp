#include "transport/dense_products.hpp"

#include <algorithm>

namespace unshuffle::transport {
namespace {

constexpr Index rows_at_once = 256, columns_at_once = 64;
/// Below this a product takes about as long as starting threads for it (some ten microseconds).
constexpr Index entries_worth_threads = 100000;

}  // namespace

Vector dense_times(const Matrix& k, const Vector& x) {
  Vector product(k.rows());
  const Index blocks = (k.rows() + rows_at_once - 1) / rows_at_once;
#pragma omp parallel for schedule(static) if (k.size() > entries_worth_threads)
  for (Index b = 0; b < blocks; ++b) {
    const Index first = b * rows_at_once, count = std::min(rows_at_once, k.rows() - first);
    product.segment(first, count).noalias() = k.middleRows(first, count) * x;
  }
  return product;
}

Vector dense_transposed_times(const Matrix& k, const Vector& x) {
  Vector product(k.cols());
  const Index blocks = (k.cols() + columns_at_once - 1) / columns_at_once;
#pragma omp parallel for schedule(static) if (k.size() > entries_worth_threads)
  for (Index b = 0; b < blocks; ++b) {
    const Index first = b * columns_at_once, count = std::min(columns_at_once, k.cols() - first);
    product.segment(first, count).noalias() = k.middleCols(first, count).transpose() * x;
  }
  return product;
}

}  // namespace unshuffle::transport
