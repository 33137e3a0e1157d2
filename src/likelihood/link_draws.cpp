#include "likelihood/link_draws.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace unshuffle {

namespace {

double log_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == -HUGE_VAL ? a : a + std::log1p(std::exp(b - a));
}

/// With not more rows than columns. rest(S) is the log of the sum over all ways to link the rows that follow when the
/// columns of S are taken, row k being the next when S has k columns; rows then choose one after the other.
std::vector<Index> draw_wide(const Matrix& logs, RandomStream& random) {
  const Index n = logs.rows(), m = logs.cols();
  const auto states = std::size_t{1} << std::size_t(m);
  std::vector<double> rest(states, -HUGE_VAL);
  for (std::size_t taken = states; taken-- > 0;) {
    const auto row = Index(std::popcount(taken));
    if (row > n) continue;
    if (row == n) {
      rest[taken] = 0;
      continue;
    }
    for (Index j = 0; j < m; ++j) {
      const std::size_t bit = std::size_t{1} << std::size_t(j);
      if ((taken & bit) == 0) rest[taken] = log_sum(rest[taken], logs(row, j) + rest[taken | bit]);
    }
  }
  std::vector<Index> column(std::size_t(n), -1);
  std::size_t taken = 0;
  for (Index row = 0; row < n; ++row) {
    double left = random.uniform();
    for (Index j = 0; j < m; ++j) {
      const std::size_t bit = std::size_t{1} << std::size_t(j);
      if ((taken & bit) != 0) continue;
      column[std::size_t(row)] = j;
      left -= std::exp(logs(row, j) + rest[taken | bit] - rest[taken]);
      if (left <= 0) break;
    }
    taken |= std::size_t{1} << std::size_t(column[std::size_t(row)]);
  }
  return column;
}

/// Which of `count` positions has each value; -1: none.
std::vector<Index> inverse(const std::vector<Index>& of_position, Index count) {
  std::vector<Index> position(std::size_t(count), -1);
  for (std::size_t k = 0; k < of_position.size(); ++k)
    if (of_position[k] >= 0) position[std::size_t(of_position[k])] = Index(k);
  return position;
}

}  // namespace

std::vector<Index> draw_exactly(const Matrix& log_weights, RandomStream& random) {
  if (log_weights.rows() <= log_weights.cols()) return draw_wide(log_weights, random);
  return inverse(draw_wide(log_weights.transpose(), random), log_weights.rows());
}

LinkChain::LinkChain(std::vector<Index> column_of_row, Index columns)
    : rows_(Index(column_of_row.size())), rows_shorter_(rows_ <= columns) {
  const std::vector<Index> start = rows_shorter_ ? std::move(column_of_row) : inverse(column_of_row, columns);
  const Index longer = std::max(rows_, columns);
  std::vector<char> taken(std::size_t(longer), 0);
  for (std::size_t k = 0; k < start.size(); ++k) {
    holders_.push_back(Index(k));
    held_.push_back(start[k]);
    taken[std::size_t(start[k])] = 1;
  }
  for (Index row = 0; row < longer; ++row)
    if (taken[std::size_t(row)] == 0) held_.push_back(row);
}

double LinkChain::weight_at(const PairLogWeight& log_weight, Index place, Index partner) const {
  if (place >= Index(holders_.size())) return 0;
  const Index holder = holders_[std::size_t(place)];
  return rows_shorter_ ? log_weight(holder, partner) : log_weight(partner, holder);
}

void LinkChain::run(const PairLogWeight& log_weight, Index sweeps, RandomStream& random) {
  const auto places = Index(holders_.size()), all = Index(held_.size());
  if (all < 2) return;
  const double scales = std::log(double(std::max<Index>(places, 2)));
  for (Index step = 0; step < sweeps * places; ++step) {
    const Index a = random.below(places);
    Index b = 0;
    if (random.uniform() < 0.5) {
      b = random.below(all);
    } else {
      const auto distance = Index(std::exp(scales * random.uniform()));
      b = random.uniform() < 0.5 ? a - distance : a + distance;
      if (b < 0 || b >= places) continue;
    }
    if (a == b) continue;
    const Index mine = held_[std::size_t(a)], yours = held_[std::size_t(b)];
    const double gain = weight_at(log_weight, a, yours) + weight_at(log_weight, b, mine) -
                        weight_at(log_weight, a, mine) - weight_at(log_weight, b, yours);
    if (gain >= 0 || random.uniform() < std::exp(gain)) std::swap(held_[std::size_t(a)], held_[std::size_t(b)]);
  }
}

std::vector<Index> LinkChain::column_of_row() const {
  const std::vector<Index> linked(held_.begin(), held_.begin() + long(holders_.size()));
  return rows_shorter_ ? linked : inverse(linked, rows_);
}

}  // namespace unshuffle
