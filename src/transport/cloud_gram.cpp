// Products with KᵀK, of which conjugate gradients are made.
#include <algorithm>
#include <cmath>

#include "transport/cloud_kernel.hpp"

namespace unshuffle::transport {

std::vector<char> CloudKernel::pairs_above(double share) const {
  const Vector u = row_factor_.array().log() - rows_.weights().array().log() - shifts_.array();
  const PotentialsOfClouds here{row_base_ + u, column_base_ + reference_,
                                (row_sums_.array() / rows_.weights().array()).max(1e-300).log(),
                                (column_sums_.array() / columns_.weights().array()).max(1e-300).log()};
  const BoxPairs few = pairs_of_boxes(rows_, columns_, here, epsilon_, std::log(share));
  std::vector<char> above(pairs_.column.size(), 0);
  for (std::size_t a = 0; a + 1 < few.first_of_row.size(); ++a) {
    Index pair = pairs_.first_of_row[a];
    for (Index k = few.first_of_row[a]; k < few.first_of_row[a + 1]; ++k) {
      while (pair < pairs_.first_of_row[a + 1] && pairs_.column[at(pair)] < few.column[at(k)]) ++pair;
      if (pair < pairs_.first_of_row[a + 1] && pairs_.column[at(pair)] == few.column[at(k)]) above[at(pair)] = 1;
    }
  }
  return above;
}

std::vector<Eigen::Triplet<double>> CloudKernel::large_entries(double share, Index a_row) const {
  std::vector<Eigen::Triplet<double>> large;
  Tile room;
  for (Index a = 0; a < static_cast<Index>(rows_.leaves().size()); ++a) {
    const RowPanel rows_here = panel(a);
    for (Index pair = pairs_.first_of_row[at(a)]; pair < pairs_.first_of_row[at(a) + 1]; ++pair) {
      const CloudBox& box = columns_.leaf(pairs_.column[at(pair)]);
      const double* tile = entries(rows_here, pair, pairs_.column[at(pair)], room);
      for (Index k = 0; k < box.count; ++k)
        for (Index i = 0; i < rows_here.count; ++i) {
          const double entry = tile[k * rows_here.padded + i];
          if (entry >= share)
            large.emplace_back(static_cast<int>(rows_here.first + i), static_cast<int>(box.first + k), entry);
        }
    }
    if (large.size() > at(a_row * (rows_here.first + rows_here.count))) return {};
  }
  return large;
}

/// Row boxes are shared out to a fixed number of partial sums.
Vector CloudKernel::gram_times(const Vector& weight, const Vector& x, const std::vector<char>& of_pairs) const {
  constexpr Index parts = 8;
  const auto leaves = static_cast<Index>(rows_.leaves().size());
  Matrix sums = Matrix::Zero(cols(), parts);
#pragma omp parallel for schedule(dynamic, 1) if (worth_threads())
  for (Index part = 0; part < parts; ++part) {
    TileStore room;
    room.resize(at(most_kept));
    for (Index a = part * leaves / parts; a < (part + 1) * leaves / parts; ++a)
      gram_of_rows(a, weight, x, of_pairs, room, sums.col(part));
  }
  return sums.rowwise().sum();
}

/// Tiles of the row box stay in `room` between the two products as far as they fit.
void CloudKernel::gram_of_rows(Index row_leaf, const Vector& weight, const Vector& x, const std::vector<char>& of_pairs,
                               TileStore& room, Eigen::Ref<Vector> sums) const {
  const RowPanel rows_here = panel(row_leaf);
  const Index padded = rows_here.padded;
  const Index first = pairs_.first_of_row[at(row_leaf)], last = pairs_.first_of_row[at(row_leaf) + 1];
  RowNumbers products;
  auto product = products.first(padded);
  Tile scratch;
  Index used = 0;
  std::vector<const double*> kept(at(last - first), nullptr);
  for (Index pair = first; pair < last; ++pair) {
    if (of_pairs[at(pair)] == 0) continue;
    const Index b = pairs_.column[at(pair)];
    const CloudBox& box = columns_.leaf(b);
    const double* tile = entries(rows_here, pair, b, scratch);
    if (tile != scratch.numbers.data()) {
      kept[at(pair - first)] = tile;
    } else if (used + padded * box.count <= most_kept) {
      std::copy(tile, tile + padded * box.count, room.at(at(used)));
      kept[at(pair - first)] = room.at(at(used));
      used += padded * box.count;
    }
    for (Index k = 0; k < box.count; ++k) product += ConstAlignedArray(tile + k * padded, padded) * x[box.first + k];
  }
  RowNumbers weighted = rows_here.part_and_zeros(weight);
  weighted.first(padded) *= product;
  const ConstAlignedArray by_row(weighted.numbers.data(), padded);
  for (Index pair = first; pair < last; ++pair) {
    if (of_pairs[at(pair)] == 0) continue;
    const Index b = pairs_.column[at(pair)];
    const CloudBox& box = columns_.leaf(b);
    const double* tile = kept[at(pair - first)];
    if (tile == nullptr) tile = entries(rows_here, pair, b, scratch);
    for (Index k = 0; k < box.count; ++k) sums[box.first + k] += dot({tile + k * padded, padded}, by_row);
  }
}

}  // namespace unshuffle::transport
