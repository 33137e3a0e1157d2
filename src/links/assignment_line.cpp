#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

namespace {

std::vector<Index> order_of(const VectorRef& position) {
  std::vector<Index> order(static_cast<std::size_t>(position.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return position(a) != position(b) ? position(a) < position(b) : a < b; });
  return order;
}

// D(i, d): least cost of the first i short positions among the first i + d long ones, d = 0 .. extra.
//   D(i, d) = min( D(i, d-1)                                 the last long one stays unmatched,
//                  D(i-1, d) + (short_i - long_{i+d})² )     it is the partner of the last short one.
// One bit per (i, d) records the choice, so n·(extra+1)/8 bytes suffice to trace back. Ties take the partner further
// left.
std::vector<std::size_t> match_sorted(std::span<const double> shorter, std::span<const double> longer) {
  const std::size_t n = shorter.size();
  const std::size_t extra = longer.size() - n;
  std::vector<double> cost(extra + 1, 0.0);
  std::vector<bool> takes((n + 1) * (extra + 1));
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t d = 0; d <= extra; ++d) {
      const double gap = shorter[i - 1] - longer[i - 1 + d];
      const double taken = cost[d] + gap * gap;
      const bool take = d == 0 || taken < cost[d - 1];
      cost[d] = take ? taken : cost[d - 1];
      takes[i * (extra + 1) + d] = take;
    }
  }
  std::vector<std::size_t> partner(n);
  std::size_t d = extra;
  for (std::size_t i = n; i > 0; --i) {
    while (!takes[i * (extra + 1) + d]) --d;
    partner[i - 1] = i - 1 + d;
  }
  return partner;
}

/// match_sorted on `pieces` equal quantile ranges of both sides.
std::vector<std::size_t> match_in_pieces(const std::vector<double>& shorter, const std::vector<double>& longer,
                                         std::size_t pieces) {
  std::vector<std::size_t> partner;
  std::size_t short_begin = 0;
  std::size_t long_begin = 0;
  for (std::size_t piece = 1; piece <= pieces; ++piece) {
    const std::size_t short_end = shorter.size() * piece / pieces;
    const std::size_t share = longer.size() * piece / pieces;
    // Every piece, and the rest after it, has at least as many long positions as short ones.
    const std::size_t long_end =
        std::clamp(share, long_begin + (short_end - short_begin), longer.size() - (shorter.size() - short_end));
    const auto local = match_sorted(std::span(shorter).subspan(short_begin, short_end - short_begin),
                                    std::span(longer).subspan(long_begin, long_end - long_begin));
    for (const std::size_t j : local) partner.push_back(long_begin + j);
    short_begin = short_end;
    long_begin = long_end;
  }
  return partner;
}

std::vector<double> gathered(const VectorRef& position, const std::vector<Index>& order) {
  std::vector<double> sorted(order.size());
  std::transform(order.begin(), order.end(), sorted.begin(), [&](Index i) { return position(i); });
  return sorted;
}

}  // namespace

std::vector<Index> assign_on_line(const VectorRef& t, const VectorRef& s, double budget) {
  const std::vector<Index> t_order = order_of(t);
  const std::vector<Index> s_order = order_of(s);
  std::vector<Index> partner(static_cast<std::size_t>(t.size()), -1);
  if (t.size() == s.size()) {
    for (std::size_t k = 0; k < t_order.size(); ++k) partner[std::size_t(t_order[k])] = s_order[k];
    return partner;
  }
  const bool t_shorter = t.size() < s.size();
  const std::vector<double> shorter = t_shorter ? gathered(t, t_order) : gathered(s, s_order);
  const std::vector<double> longer = t_shorter ? gathered(s, s_order) : gathered(t, t_order);
  const double work = double(shorter.size()) * double(longer.size() - shorter.size() + 1);
  const auto pieces = static_cast<std::size_t>(std::clamp(std::ceil(work / budget), 1.0, double(shorter.size()) + 1));
  const auto matched = match_in_pieces(shorter, longer, pieces);
  for (std::size_t k = 0; k < matched.size(); ++k) {
    const std::size_t i = t_shorter ? k : matched[k];
    const std::size_t j = t_shorter ? matched[k] : k;
    partner[std::size_t(t_order[i])] = s_order[j];
  }
  return partner;
}

}  // namespace unshuffle
