// Pairs of boxes whose part of the plan is not negligible.
#pragma once

#include <vector>

#include "transport/point_cloud.hpp"

namespace unshuffle::transport {

/// Numbered by leaf, listed by row box and by column box.
struct BoxPairs {
  std::vector<Index> first_of_row;     ///< Pairs [first_of_row[a], first_of_row[a + 1]) have row box a ...
  std::vector<Index> column;           ///< ... and these column boxes, ascending.
  std::vector<Index> first_of_column;  ///< Likewise into `row` and `place`.
  std::vector<Index> row;
  std::vector<Index> place;  ///< The pair's number in the list by row box.
  double entries = 0;        ///< Pairs of points.

  [[nodiscard]] Index size() const { return static_cast<Index>(column.size()); }
};

/// Potentials in units of ε, against the weights, with the log of what each row or column holds of its weight.
struct PotentialsOfClouds {
  Vector rows, columns;
  Vector row_log_ratio, column_log_ratio;
};

/// Pairs of boxes of two clouds except those where every entry's density, Γ_ij/(μ_iν_j), is below `negligible` of what
/// its row and its column hold of their weights: what is left out adds up to less than `negligible` of the mass of any
/// of them.
[[nodiscard]] BoxPairs pairs_of_boxes(const PointCloud& rows, const PointCloud& columns,
                                      const PotentialsOfClouds& potentials, double epsilon, double log_negligible);

/// Whether all pairs of `some` are among `all`.
[[nodiscard]] bool contains(const BoxPairs& all, const BoxPairs& some);

}  // namespace unshuffle::transport
