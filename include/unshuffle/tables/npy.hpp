// Arrays as NumPy saves them (.npy), so that they can stand wherever CSV files can.
#pragma once

#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/table.hpp"

namespace UNSHUFFLE_EXPORT unshuffle {

/// A table out of an array of one or two dimensions: integers, truth values, float32 or float64, either byte order,
/// either storage order, formats 1 to 3. Columns are called after the file: `y` for one-dimensional y.npy, `z1`, `z2`,
/// ... for two-dimensional z.npy. Objects are refused: they are code, not numbers. Throws BadData naming the file for
/// what is not such an array, and for integers that a double cannot hold. No sizes are believed before they are
/// checked.
[[nodiscard]] Table read_npy(const std::string& path);

/// As read_npy, from memory; `source` is the file name.
[[nodiscard]] Table parse_npy(const std::string& bytes, const std::string& source);

}  // namespace unshuffle
