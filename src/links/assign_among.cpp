#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "unshuffle/core/stop.hpp"
#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

namespace {

constexpr double unreached = std::numeric_limits<double>::infinity();

/// Shortest augmenting paths as in assign(), with a heap of the columns reached; rows ≤ columns.
class SparseAugmentation {
 public:
  SparseAugmentation(const std::vector<PossiblePair>& candidates, Index rows, Index columns)
      : candidates_(candidates),
        first_(std::size_t(rows) + 1, 0),
        u_(Vector::Zero(rows)),
        v_(Vector::Zero(columns)),
        distance_(Vector::Constant(columns, unreached)),
        previous_(std::size_t(columns), -1),
        done_(std::size_t(columns), 0),
        row_of_(std::size_t(columns), -1),
        column_of_(std::size_t(rows), -1) {
    for (const PossiblePair& pair : candidates) ++first_[std::size_t(pair.row) + 1];
    for (std::size_t k = 1; k < first_.size(); ++k) first_[k] += first_[k - 1];
  }

  std::vector<Index> run() {
    for (Index i = 0; i < u_.size(); ++i) take_cheapest(i);
    for (Index i = 0; i < u_.size(); ++i)
      if (column_of_[std::size_t(i)] < 0) augment(i);
    return std::move(column_of_);
  }

 private:
  /// Reduced costs are zero for the cheapest candidate of a row while v is zero.
  void take_cheapest(Index i) {
    const auto begin = candidates_.begin() + first_[std::size_t(i)],
               end = candidates_.begin() + first_[std::size_t(i) + 1];
    if (begin == end) return;
    const auto cheapest =
        std::min_element(begin, end, [](const PossiblePair& a, const PossiblePair& b) { return a.cost < b.cost; });
    u_(i) = cheapest->cost;
    Index& row = row_of_[std::size_t(cheapest->column)];
    if (row >= 0) return;
    row = i;
    column_of_[std::size_t(i)] = cheapest->column;
  }

  void augment(Index start) {
    stop_if_asked();
    touched_.clear();
    scanned_.clear();
    using Reached = std::pair<double, Index>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> open;
    Index row = start, end = -1;
    double reached = 0;
    while (true) {
      for (Index k = first_[std::size_t(row)]; k < first_[std::size_t(row) + 1]; ++k) {
        const auto& [from, j, cost] = candidates_[std::size_t(k)];
        const double through = reached + cost - u_(row) - v_(j);
        if (done_[std::size_t(j)] != 0 || !(through < distance_(j))) continue;
        if (distance_(j) == unreached) touched_.push_back(j);
        distance_(j) = through;
        previous_[std::size_t(j)] = row;
        open.emplace(through, j);
      }
      while (!open.empty() && done_[std::size_t(open.top().second)] != 0) open.pop();
      if (open.empty()) break;  // no partner is left for this row, now or later
      const Index nearest = open.top().second;
      reached = open.top().first;
      open.pop();
      done_[std::size_t(nearest)] = 1;
      scanned_.push_back(nearest);
      row = row_of_[std::size_t(nearest)];
      if (row < 0) {
        end = nearest;
        break;
      }
    }
    if (end >= 0) accept(start, end, reached);
    for (const Index j : touched_) {
      distance_(j) = unreached;
      done_[std::size_t(j)] = 0;
    }
  }

  void accept(Index start, Index end, double reached) {
    u_(start) += reached;
    for (const Index j : scanned_) {
      if (j == end) continue;
      u_(row_of_[std::size_t(j)]) += reached - distance_(j);
      v_(j) += distance_(j) - reached;
    }
    for (Index j = end; j >= 0;) {
      const Index i = previous_[std::size_t(j)];
      row_of_[std::size_t(j)] = i;
      std::swap(column_of_[std::size_t(i)], j);
      if (i == start) break;
    }
  }

  const std::vector<PossiblePair>& candidates_;
  std::vector<Index> first_;
  Vector u_, v_, distance_;
  std::vector<Index> previous_;
  std::vector<char> done_;
  std::vector<Index> row_of_, column_of_, touched_, scanned_;
};

}  // namespace

std::vector<Index> assign_among(const std::vector<PossiblePair>& candidates, Index rows, Index columns) {
  if (rows <= columns) return SparseAugmentation(candidates, rows, columns).run();
  std::vector<PossiblePair> turned = candidates;
  for (PossiblePair& pair : turned) std::swap(pair.row, pair.column);
  std::stable_sort(turned.begin(), turned.end(),
                   [](const PossiblePair& a, const PossiblePair& b) { return a.row < b.row; });
  const std::vector<Index> row_of = SparseAugmentation(turned, columns, rows).run();
  std::vector<Index> column_of(std::size_t(rows), -1);
  for (std::size_t j = 0; j < row_of.size(); ++j)
    if (row_of[j] >= 0) column_of[std::size_t(row_of[j])] = Index(j);
  return column_of;
}

}  // namespace unshuffle
