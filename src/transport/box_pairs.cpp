#include "transport/box_pairs.hpp"

#include <algorithm>

namespace unshuffle::transport {
namespace {

std::vector<Index> numbers_of_leaves(const PointCloud& cloud) {
  std::vector<Index> number(cloud.boxes().size(), -1);
  for (std::size_t k = 0; k < cloud.leaves().size(); ++k) number[at(cloud.leaves()[k])] = static_cast<Index>(k);
  return number;
}

/// For every box, the largest potential and the largest one of a row's share: u less log r where r < 1.
struct LargestInBoxes {
  LargestInBoxes(const PointCloud& cloud, const Vector& potential, const Vector& log_ratio)
      : own(cloud.largest_in_boxes(potential)), relative(cloud.largest_in_boxes(potential - log_ratio.cwiseMin(0.0))) {}
  Vector own, relative;
};

/// The lists by row box and by column box of pairs given in any order.
BoxPairs listed(std::vector<std::pair<Index, Index>> found, const PointCloud& rows, const PointCloud& columns) {
  std::sort(found.begin(), found.end());
  BoxPairs pairs;
  pairs.first_of_row.assign(rows.leaves().size() + 1, 0);
  pairs.first_of_column.assign(columns.leaves().size() + 1, 0);
  for (const auto& [a, b] : found) {
    ++pairs.first_of_row[at(a) + 1];
    ++pairs.first_of_column[at(b) + 1];
    pairs.entries += static_cast<double>(rows.leaf(a).count) * static_cast<double>(columns.leaf(b).count);
    pairs.column.push_back(b);
  }
  for (auto* first : {&pairs.first_of_row, &pairs.first_of_column})
    for (std::size_t k = 1; k < first->size(); ++k) (*first)[k] += (*first)[k - 1];
  std::vector<Index> next = pairs.first_of_column;
  pairs.row.resize(found.size());
  pairs.place.resize(found.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    const std::size_t here = at(next[at(found[k].second)]++);
    pairs.row[here] = found[k].first;
    pairs.place[here] = static_cast<Index>(k);
  }
  return pairs;
}

}  // namespace

BoxPairs pairs_of_boxes(const PointCloud& rows, const PointCloud& columns, const PotentialsOfClouds& potentials,
                        double epsilon, double log_negligible) {
  const LargestInBoxes u(rows, potentials.rows, potentials.row_log_ratio),
      v(columns, potentials.columns, potentials.column_log_ratio);
  const std::vector<Index> row_number = numbers_of_leaves(rows), column_number = numbers_of_leaves(columns);
  std::vector<std::pair<Index, Index>> open{{0, 0}}, found;
  while (!open.empty()) {
    const auto [a, b] = open.back();
    open.pop_back();
    const double largest = std::max(u.relative[a] + v.own[b], u.own[a] + v.relative[b]) -
                           least_squared_distance(rows, a, columns, b) / epsilon;
    if (largest < log_negligible) continue;
    const CloudBox &in_a = rows.boxes()[at(a)], &in_b = columns.boxes()[at(b)];
    if (in_a.is_leaf() && in_b.is_leaf()) {
      found.emplace_back(row_number[at(a)], column_number[at(b)]);
    } else if (in_b.is_leaf() || (!in_a.is_leaf() && in_a.count > in_b.count)) {
      open.emplace_back(in_a.left, b);
      open.emplace_back(in_a.right, b);
    } else {
      open.emplace_back(a, in_b.left);
      open.emplace_back(a, in_b.right);
    }
  }
  return listed(std::move(found), rows, columns);
}

bool contains(const BoxPairs& all, const BoxPairs& some) {
  for (std::size_t a = 0; a + 1 < some.first_of_row.size(); ++a) {
    const auto of = [a](const BoxPairs& pairs) {
      return std::pair(pairs.column.begin() + pairs.first_of_row[a], pairs.column.begin() + pairs.first_of_row[a + 1]);
    };
    const auto [here, end] = of(all);
    const auto [first, last] = of(some);
    if (!std::includes(here, end, first, last)) return false;
  }
  return true;
}

}  // namespace unshuffle::transport
