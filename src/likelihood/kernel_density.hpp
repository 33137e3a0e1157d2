// The distribution of responses when the features carry no information.
#pragma once

#include <cstdint>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// The logarithm of a density on equally spaced points: linear between them, constant beyond.
struct TabulatedDensity {
  double low = 0, step = 1;
  Vector logs;

  [[nodiscard]] double log_at(double value) const;
};

/// A Gaussian kernel estimate with Silverman's bandwidth per output. For one output and many rows it uses all of them
/// and is tabulated; otherwise, or if they spread too widely for a table, it uses at most a few hundred rows.
class KernelDensity {
 public:
  KernelDensity(const Matrix& values, std::uint64_t seed);

  [[nodiscard]] Vector log_at(const Matrix& values) const;

  /// Of the kernel, per output.
  [[nodiscard]] const Vector& bandwidth() const { return bandwidth_; }

  /// At equally spaced points over the values and a little beyond; one output only.
  [[nodiscard]] TabulatedDensity tabulated() const;

 private:
  void tabulate(const Matrix& values);

  TabulatedDensity table_;  // empty: sums over the centres
  Matrix centres_;
  Vector bandwidth_;
  double log_unit_ = 0;
};

}  // namespace unshuffle
