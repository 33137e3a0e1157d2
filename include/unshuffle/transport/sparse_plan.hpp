// A plan without its negligible entries.
#pragma once

#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {
namespace transport UNSHUFFLE_EXPORT {

/// Entry k is mass[k] in rows[k], columns[k], column by column.
struct SparsePlan {
  std::vector<Index> rows, columns;
  std::vector<double> mass;
  double left_out = 0;  ///< Mass of all other entries.
};

/// The largest entries of a plan, such that all others together hold no more than this share of its mass. Of entries
/// that are equal to within a part in 256 either all are kept or none.
[[nodiscard]] SparsePlan sparse(const MatrixRef& plan, double left_out = 1e-9);

}  // namespace transport
}  // namespace unshuffle
