// Products of tall matrices. OpenBLAS splits these between threads that synchronise by spinning every few hundred rows,
// which costs more than it gains unless the processor is idle.
#pragma once

#include <algorithm>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Aᵀ diag(v) A.
inline Matrix weighted_gram(const MatrixRef& a, const VectorRef& v) {
  constexpr Index tile = 256;
  Matrix sum = Matrix::Zero(a.cols(), a.cols());
  for (Index begin = 0; begin < a.rows(); begin += tile) {
    const auto rows = a.middleRows(begin, std::min(tile, a.rows() - begin));
    const Matrix weighted = v.segment(begin, rows.rows()).asDiagonal() * rows;
    sum += rows.transpose().lazyProduct(weighted);
  }
  return sum;
}

/// Aᵀ A.
inline Matrix gram(const MatrixRef& a) { return weighted_gram(a, Vector::Ones(a.rows())); }

}  // namespace unshuffle
