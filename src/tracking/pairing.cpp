#include "tracking/pairing.hpp"

#include <algorithm>
#include <numeric>

#include "unshuffle/links/assignment.hpp"

namespace unshuffle::tracking {
namespace {

/// Union-find over rows and columns.
class Parts {
 public:
  explicit Parts(Index size) : parent_(static_cast<std::size_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), Index{0});
  }
  Index root(Index node) {
    while (parent_[std::size_t(node)] != node) {
      node = parent_[std::size_t(node)] = parent_[std::size_t(parent_[std::size_t(node)])];
    }
    return node;
  }
  void join(Index a, Index b) { parent_[std::size_t(root(a))] = root(b); }

 private:
  std::vector<Index> parent_;
};

/// Position of every value among the sorted distinct ones.
struct Numbering {
  std::vector<Index> values;
  void add(Index value) { values.push_back(value); }
  void close() {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  [[nodiscard]] Index of(Index value) const {
    return std::lower_bound(values.begin(), values.end(), value) - values.begin();
  }
  [[nodiscard]] Index size() const { return static_cast<Index>(values.size()); }
};

void pair_part(const std::vector<Edge>& edges, const std::vector<std::size_t>& part, std::vector<std::size_t>& chosen) {
  if (part.size() == 1) {
    chosen.push_back(part.front());
    return;
  }
  Numbering rows;
  Numbering columns;
  for (const std::size_t at : part) {
    rows.add(edges[at].row);
    columns.add(edges[at].column);
  }
  rows.close();
  columns.close();
  // Weights are positive, so omitting a pair costs 0 and every complete assignment of the part represents a choice.
  Matrix cost = Matrix::Zero(rows.size(), columns.size());
  for (const std::size_t at : part) cost(rows.of(edges[at].row), columns.of(edges[at].column)) = -edges[at].weight;
  const Assignment best = assign(cost);
  for (const std::size_t at : part) {
    if (best.column_of_row[std::size_t(rows.of(edges[at].row))] == columns.of(edges[at].column)) chosen.push_back(at);
  }
}

}  // namespace

std::vector<std::size_t> heaviest_pairs(const std::vector<Edge>& edges, Index rows, Index columns) {
  Parts parts(rows + columns);
  for (const Edge& edge : edges) parts.join(edge.row, rows + edge.column);
  std::vector<std::vector<std::size_t>> members(static_cast<std::size_t>(rows + columns));
  for (std::size_t at = 0; at < edges.size(); ++at) members[std::size_t(parts.root(edges[at].row))].push_back(at);
  std::vector<std::size_t> chosen;
  for (const auto& part : members) {
    if (!part.empty()) pair_part(edges, part, chosen);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace unshuffle::tracking
