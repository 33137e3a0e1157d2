// NumPy array files (.npy), accepted wherever CSV files are.
#pragma once

#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A table out of an array of one or two dimensions: integers, truth values, float32 or float64, either byte order,
/// either storage order, formats 1 to 3. Columns are called after the file: `y` for one-dimensional y.npy, `z1`, `z2`,
/// ... for two-dimensional z.npy. Object arrays are rejected: they are pickled code. Throws BadData naming the file if
/// it is not such an array or has integers that a double cannot represent. Sizes are checked before use.
[[nodiscard]] Table read_npy(const std::string& path);

/// As read_npy, from memory; `source` is the file name.
[[nodiscard]] Table parse_npy(const std::string& bytes, const std::string& source);

}  // namespace unshuffle
