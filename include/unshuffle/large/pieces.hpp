// A table too large to handle whole: rows in pieces, in memory or in a file that is deleted with the process.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {
namespace large UNSHUFFLE_EXPORT {

class Pieces {
 public:
  /// `scratch` is the folder of the file; empty: pieces stay in memory.
  Pieces(Index columns, const std::vector<Index>& most_rows, const std::string& scratch);
  ~Pieces();
  Pieces(Pieces&&) noexcept;
  Pieces& operator=(Pieces&&) noexcept;

  /// Different pieces may be put at the same time. At most as many rows as announced.
  void put(std::size_t piece, Matrix rows);

  [[nodiscard]] std::size_t count() const { return places_.size(); }
  [[nodiscard]] Index rows(std::size_t piece) const { return places_[piece].rows; }
  [[nodiscard]] Index rows() const;
  [[nodiscard]] Index columns() const { return columns_; }

  /// The rows of a piece; `buffer` may be used to hold them. Throws SystemFailure when the disk fails.
  [[nodiscard]] const Matrix& at(std::size_t piece, Matrix& buffer) const;

 private:
  struct Place {
    Index rows = 0;
    Index most_rows = 0;
    std::size_t offset = 0;  // in the file, in bytes
    Matrix in_memory{};
  };
  Index columns_;
  std::vector<Place> places_;
  int file_ = -1;
};

}  // namespace large
}  // namespace unshuffle
