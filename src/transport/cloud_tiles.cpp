#include "transport/cloud_tiles.hpp"

namespace unshuffle::transport {

RowPanel::RowPanel(const PointCloud& cloud, const CloudBox& box)
    : first(box.first), count(box.count), padded((box.count + lanes - 1) / lanes * lanes) {
  for (Index o = 0; o < cloud.dimension(); ++o) coordinates[at(o)] = part(cloud.points().col(o));
}

RowNumbers RowPanel::part(const VectorRef& of) const {
  RowNumbers numbers = part_and_zeros(of);
  numbers.first(padded).tail(padded - count).setConstant(of[first + count - 1]);
  return numbers;
}

RowNumbers RowPanel::part_and_zeros(const VectorRef& of) const {
  RowNumbers numbers;
  numbers.first(count) = of.segment(first, count).array();
  return numbers;
}

}  // namespace unshuffle::transport
