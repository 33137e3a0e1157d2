#include "unshuffle/links/assignment.hpp"

#include <limits>

#include "unshuffle/core/stop.hpp"

namespace unshuffle {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Successive shortest augmenting paths for rows ≤ columns; `at(i, j)` reads the cost.
template <class Cost>
struct Augmentation {
  Cost at;
  Index rows;
  Index columns;
  Vector u = Vector::Zero(rows);
  Vector v = Vector::Zero(columns);
  std::vector<Index> row_of = std::vector<Index>(std::size_t(columns), -1);
  std::vector<Index> column_of = std::vector<Index>(std::size_t(rows), -1);

  // Dijkstra over columns on reduced costs C_ij - u_i - v_j ≥ 0 from one free row to the nearest free column. Columns
  // reached below the final distance δ get v_j += dist_j - δ and their rows u_i += δ - dist_j, which keeps the reduced
  // costs non-negative and makes those on the path zero.
  void augment(Index start) {
    stop_if_asked();
    Vector distance = Vector::Constant(columns, infinity);
    std::vector<Index> previous_row(std::size_t(columns), -1);
    std::vector<char> done(std::size_t(columns), 0);
    std::vector<Index> scanned;
    Index row = start;
    Index end = -1;
    double reached = 0;
    while (end < 0) {
      Index nearest = -1;
      double least = infinity;
      for (Index j = 0; j < columns; ++j) {
        if (done[std::size_t(j)] != 0) continue;
        const double through = reached + at(row, j) - u(row) - v(j);
        if (through < distance(j)) {
          distance(j) = through;
          previous_row[std::size_t(j)] = row;
        }
        const bool free_tie =
            distance(j) == least && nearest >= 0 && row_of[std::size_t(nearest)] >= 0 && row_of[std::size_t(j)] < 0;
        if (distance(j) < least || (distance(j) < infinity && free_tie)) {
          least = distance(j);
          nearest = j;
        }
      }
      if (nearest < 0) return;  // no partner is left for this row, now or later
      reached = least;
      done[std::size_t(nearest)] = 1;
      scanned.push_back(nearest);
      if (row_of[std::size_t(nearest)] < 0) {
        end = nearest;
      } else {
        row = row_of[std::size_t(nearest)];
      }
    }
    u(start) += reached;
    for (const Index j : scanned) {
      if (j == end) continue;
      u(row_of[std::size_t(j)]) += reached - distance(j);
      v(j) += distance(j) - reached;
    }
    for (Index j = end; j >= 0;) {
      const Index i = previous_row[std::size_t(j)];
      row_of[std::size_t(j)] = i;
      std::swap(column_of[std::size_t(i)], j);
      if (i == start) break;
    }
  }

  void run() {
    for (Index i = 0; i < rows; ++i) augment(i);
  }
};

}  // namespace

Assignment assign(const MatrixRef& cost) {
  const bool wide = cost.rows() <= cost.cols();
  const auto read = [&](Index i, Index j) { return wide ? cost(i, j) : cost(j, i); };
  Augmentation<decltype(read)> solver{read, wide ? cost.rows() : cost.cols(), wide ? cost.cols() : cost.rows()};
  solver.run();
  Assignment result;
  result.column_of_row = wide ? std::move(solver.column_of) : std::move(solver.row_of);
  result.row_dual = wide ? std::move(solver.u) : std::move(solver.v);
  result.column_dual = wide ? std::move(solver.v) : std::move(solver.u);
  for (Index i = 0; i < cost.rows(); ++i) {
    const Index j = result.column_of_row[std::size_t(i)];
    if (j >= 0) result.cost += cost(i, j);
  }
  return result;
}

}  // namespace unshuffle
