// Random numbers that depend on (seed, stream, counter) only, so that no answer depends on threads or on the order in
// which starts are tried.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// splitmix64's finaliser (Steele, Lea, Flood 2014): a bijection that looks like noise.
constexpr std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream)
      : key_(mixed(mixed(seed) ^ (stream * 0xda942042e4dd58b5ULL))) {}

  std::uint64_t bits() { return mixed(key_ ^ mixed(counter_++)); }

  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11U) + 0.5) * 0x1.0p-53; }

  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

  /// In 0 .. count-1; the bias of the remainder is below 1e-12 for any table that fits in memory.
  Index below(Index count) { return static_cast<Index>(bits() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

/// Puts them in random order (Fisher & Yates).
void shuffle(std::vector<Index>& rows, RandomStream& random);

/// `count` different rows out of 0 .. total-1 in random order (all of them, in order, when count ≥ total).
[[nodiscard]] std::vector<Index> sample_rows(Index total, Index count, RandomStream& random);

}  // namespace unshuffle
