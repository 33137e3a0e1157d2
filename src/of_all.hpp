// Vectors and tables of which every process of a team has a part. Without a team a part is the whole.
#pragma once

#include "unshuffle/team.hpp"

namespace unshuffle {

/// Everyone's rows, one below the other by rank.
template <class Rows>
[[nodiscard]] Rows rows_of_all(Team* team, Rows own) {
  if (!several(team)) return own;
  const Index columns = own.cols();
  const Matrix across = own.transpose();  // a row's numbers side by side
  const std::vector<double> all = team->gather_for_all({across.data(), across.data() + across.size()});
  return Eigen::Map<const Matrix>(all.data(), columns, static_cast<Index>(all.size()) / columns).transpose();
}

/// Sums of everyone's numbers.
template <class Numbers>
[[nodiscard]] Numbers sum_of_all(Team* team, Numbers own) {
  if (!several(team)) return own;
  std::vector<double> all(own.data(), own.data() + own.size());
  team->sum_for_all(all);
  std::copy(all.begin(), all.end(), own.data());
  return own;
}

/// The largest of everyone's numbers, one by one.
template <class Numbers>
[[nodiscard]] Numbers largest_of_all(Team* team, Numbers own) {
  if (!several(team)) return own;
  std::vector<double> all(own.data(), own.data() + own.size());
  team->largest_for_all(all);
  std::copy(all.begin(), all.end(), own.data());
  return own;
}
[[nodiscard]] inline double largest_of_all(Team* team, double own) {
  if (!several(team)) return own;
  std::vector<double> all{own};
  team->largest_for_all(all);
  return all.front();
}

}  // namespace unshuffle
