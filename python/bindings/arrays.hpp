// NumPy arrays from Eigen matrices, without copies.
#pragma once

#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle::python {

namespace nb = nanobind;

/// Row-major, the default of NumPy and torch; other layouts and number types are converted on input.
using ArrayIn = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using ArrayOut = nb::ndarray<nb::numpy, double>;

/// A new row-major array to be filled through data().
inline ArrayOut new_array(std::initializer_list<std::size_t> shape) {
  std::size_t count = 1;
  for (const std::size_t length : shape) count *= length;
  auto owned = std::make_unique<double[]>(count);
  double* data = owned.get();
  nb::capsule owner(owned.release(), [](void* numbers) noexcept { delete[] static_cast<double*>(numbers); });
  return {data, shape, owner};
}

/// The matrix moved into an array, column-major as stored.
inline ArrayOut moved(Matrix matrix) {
  auto owned = std::make_unique<Matrix>(std::move(matrix));
  const auto rows = static_cast<std::size_t>(owned->rows()), columns = static_cast<std::size_t>(owned->cols());
  double* data = owned->data();
  nb::capsule owner(owned.release(), [](void* kept) noexcept { delete static_cast<Matrix*>(kept); });
  return {data, {rows, columns}, owner, {1, std::int64_t(rows)}};
}

inline ArrayOut moved(Vector vector) {
  auto owned = std::make_unique<Vector>(std::move(vector));
  const auto size = static_cast<std::size_t>(owned->size());
  double* data = owned->data();
  nb::capsule owner(owned.release(), [](void* kept) noexcept { delete static_cast<Vector*>(kept); });
  return {data, {size}, owner};
}

}  // namespace unshuffle::python
