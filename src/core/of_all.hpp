// Vectors and tables distributed over the processes of a team. Without a team, a part is the whole.
#pragma once

#include "unshuffle/core/team.hpp"

namespace unshuffle {

/// The rows of all processes, stacked by rank.
template <class Rows>
[[nodiscard]] Rows rows_of_all(Team* team, Rows own) {
  if (!several(team)) return own;
  const Index columns = own.cols();
  const Matrix across = own.transpose();  // a row's numbers side by side
  const std::vector<double> all = team->gather_for_all({across.data(), across.data() + across.size()});
  return Eigen::Map<const Matrix>(all.data(), columns, static_cast<Index>(all.size()) / columns).transpose();
}

/// Combines the numbers of all processes element by element with `bring_together`, a collective of Team.
template <class Numbers>
[[nodiscard]] Numbers together(Team* team, Numbers own, void (Team::*bring_together)(std::vector<double>&)) {
  if (!several(team)) return own;
  std::vector<double> all(own.data(), own.data() + own.size());
  (team->*bring_together)(all);
  std::copy(all.begin(), all.end(), own.data());
  return own;
}

template <class Numbers>
[[nodiscard]] Numbers sum_of_all(Team* team, Numbers own) {
  return together(team, std::move(own), &Team::sum_for_all);
}

template <class Numbers>
[[nodiscard]] Numbers largest_of_all(Team* team, Numbers own) {
  return together(team, std::move(own), &Team::largest_for_all);
}

[[nodiscard]] inline double largest_of_all(Team* team, double own) {
  return largest_of_all(team, Eigen::Matrix<double, 1, 1>(own)).value();
}

}  // namespace unshuffle
