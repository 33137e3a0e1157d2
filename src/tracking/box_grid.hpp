// Which boxes may touch a given one, without looking at all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "unshuffle/tracking/box.hpp"

namespace unshuffle::tracking {

/// Boxes by the cells of a grid that they reach into. Cells are as large as a middling box.
class BoxGrid {
 public:
  explicit BoxGrid(const std::vector<Box>& boxes);

  /// Indices, ascending, of all boxes that share area with this one, and perhaps of others close by.
  [[nodiscard]] std::vector<std::size_t> near(const Box& box) const;

 private:
  struct Cell {
    std::int64_t x, y;
    auto operator<=>(const Cell&) const = default;
  };
  struct Entry {
    Cell cell;
    std::size_t box;
    auto operator<=>(const Entry&) const = default;
  };
  /// The cells that a box reaches into, by their corners.
  struct Range {
    Cell first, last;
    [[nodiscard]] double count() const;
  };
  [[nodiscard]] Range cells_of(const Box& box) const;

  double side_ = 1;
  std::size_t boxes_;
  std::vector<Entry> entries_;           // sorted
  std::vector<std::size_t> everywhere_;  // boxes of too many cells
};

}  // namespace unshuffle::tracking
