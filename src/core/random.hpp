// Random numbers that depend only on (seed, stream, counter), so that no answer depends on threads or on the order in
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

/// Where the streams of each use of random numbers begin. Uses that can occur in the same fit are far enough apart for
/// all their streams. Uses with equal numbers never collide: they belong to methods of which a fit runs only one, or
/// they use different seeds ("seed 0" marks uses whose answer must not depend on the user's seed). A new use takes the
/// next free power of two and is named here.
enum class Stream : std::uint64_t {
  // Random starts and consensus of rows in order, by number of the start.
  start = 0,
  link_posterior = 0,    ///< By first row of the block; seed 0. After the fit; with seed 0 it sees the starts' numbers.
  training_epoch = 0,    ///< By epoch.
  simulated_choice = 1,  ///< Cytometry's samples: which events,
  simulated_order = 2,   ///< in which order,
  simulated_gates = 3,
  simulated_population = 4,

  pairing_at_random = 1ULL << 40U,      ///< Effect of changing coefficients, on rows paired at random; seed 0.
  least_squares = 1ULL << 41U,          ///< Starts of least squares for models that are not linear, by trial.
  batches = 1ULL << 42U,                ///< Of a descent on batches, by start.
  moment_equations = 1ULL << 43U,       ///< Where they are solved from, by trial; entropic.
  alternation_batches = 1ULL << 43U,    ///< By start; am.
  predictive_distance = 1ULL << 44U,    ///< Rows that solutions are compared on; seed 0.
  swap_chain = 1ULL << 44U,             ///< By 4096 times the start plus the chain; em.
  consensus_probe = (1ULL << 45U) - 1,  ///< Rows on which a hypothesis is tested first; rs.
  consensus = 1ULL << 45U,              ///< Hypotheses, by thread of work; rs.
  search_sample = 1ULL << 45U,          ///< Rows on which starts are tried; entropic.
  sorted_alternation = 1ULL << 46U,     ///< Rows of each, by number; entropic.
  slices = 1ULL << 46U,                 ///< Directions to project on, by block; sliced-gw.
  kernel_centres = 1ULL << 47U,         ///< Rows that a density is estimated from.
  bootstrap = 1ULL << 48U,              ///< By sample.
  calibration = 1ULL << 49U,            ///< Samples of the fitted model, by number.
  joint_moments = 1ULL << 50U,
  single_response = 1ULL << 51U,  ///< By nine times the response plus 0 (rows) or 1 + trial.
  alignment_sample = 1ULL << 52U,
  partners_at_random = 1ULL << 53U,  ///< Rows paired at random, which the rate of wrong links is measured against.
  pairings_at_random = 1ULL << 54U,  ///< Orders that the one given is compared with, by piece of work; seed 0.

  link_draws =
      1ULL << 55U,  ///< After the fit: by the number of the sample times one more than the blocks, plus the block.

  hidden_weights = 0x6d6f74696f6e,  ///< Of a motion model before it is trained.
};

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream)
      : key_(mixed(mixed(seed) ^ (stream * 0xda942042e4dd58b5ULL))) {}
  /// The `number`-th stream of that use.
  RandomStream(std::uint64_t seed, Stream use, std::uint64_t number = 0)
      : RandomStream(seed, static_cast<std::uint64_t>(use) + number) {}

  std::uint64_t bits() { return mixed(key_ ^ mixed(counter_++)); }

  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11U) + 0.5) * 0x1.0p-53; }

  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

  /// In 0 .. count-1; the modulo bias is below 1e-12 for any table that fits in memory.
  Index below(Index count) { return static_cast<Index>(bits() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

/// Shuffles them (Fisher & Yates).
void shuffle(std::vector<Index>& rows, RandomStream& random);

/// `count` different rows out of 0 .. total-1 in random order (all of them, in order, when count ≥ total).
[[nodiscard]] std::vector<Index> sample_rows(Index total, Index count, RandomStream& random);

}  // namespace unshuffle
