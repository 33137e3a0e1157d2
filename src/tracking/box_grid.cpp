#include "tracking/box_grid.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unshuffle::tracking {
namespace {

constexpr double most_cells = 64;  // of a box; those that reach further are kept apart

/// A box without a place is compared with all others.
bool has_place(const Box& box) { return std::isfinite(box.left + box.top + box.width + box.height); }

double size_of(const Box& box) { return std::max(std::abs(box.width), std::abs(box.height)); }

}  // namespace

BoxGrid::BoxGrid(const std::vector<Box>& boxes) : boxes_(boxes.size()) {
  std::vector<double> sizes;
  for (const Box& box : boxes)
    if (has_place(box)) sizes.push_back(size_of(box));
  if (!sizes.empty()) {
    const auto middle = sizes.begin() + std::ptrdiff_t(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    side_ = std::max(*middle, 1e-6);
  }
  for (std::size_t at = 0; at < boxes.size(); ++at) {
    const Range range = cells_of(boxes[at]);
    if (!has_place(boxes[at]) || range.count() > most_cells) {
      everywhere_.push_back(at);
      continue;
    }
    for (std::int64_t x = range.first.x; x <= range.last.x; ++x)
      for (std::int64_t y = range.first.y; y <= range.last.y; ++y) entries_.push_back({{x, y}, at});
  }
  std::sort(entries_.begin(), entries_.end());
}

double BoxGrid::Range::count() const {
  return (double(last.x) - double(first.x) + 1) * (double(last.y) - double(first.y) + 1);
}

BoxGrid::Range BoxGrid::cells_of(const Box& box) const {
  constexpr double farthest = 1e15;  // everything beyond shares the outermost cells
  const auto cell = [&](double length) {
    const double place = length / side_;
    if (std::isnan(place)) return std::int64_t{0};  // of no consequence, see has_place
    return static_cast<std::int64_t>(std::floor(std::clamp(place, -farthest, farthest)));
  };
  return {{cell(box.left), cell(box.top)}, {cell(box.left + box.width), cell(box.top + box.height)}};
}

std::vector<std::size_t> BoxGrid::near(const Box& box) const {
  std::vector<std::size_t> found = everywhere_;
  const Range range = cells_of(box);
  const auto [first, last] = range;
  if (!has_place(box) || range.count() > std::max(most_cells, double(boxes_))) {  // looking at all boxes is faster
    found.resize(boxes_);
    std::iota(found.begin(), found.end(), std::size_t{0});
    return found;
  }
  for (std::int64_t x = first.x; x <= last.x; ++x) {
    const Entry lowest{{x, first.y}, 0};
    for (auto at = std::lower_bound(entries_.begin(), entries_.end(), lowest); at != entries_.end(); ++at) {
      if (at->cell > Cell{x, last.y}) break;
      found.push_back(at->box);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace unshuffle::tracking
