// What is assumed of the noise of several responses.
#pragma once

#include <array>
#include <span>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class NoiseCovariance {
  automatic,  ///< full for up to six responses, diagonal beyond.
  full,       ///< Every response has a variance, every two a correlation.
  diagonal,   ///< Every response has a variance.
  equal,      ///< One variance.
};
inline constexpr std::array noise_covariance_words{Word<NoiseCovariance>{"auto", NoiseCovariance::automatic},
                                                   Word<NoiseCovariance>{"full", NoiseCovariance::full},
                                                   Word<NoiseCovariance>{"diagonal", NoiseCovariance::diagonal},
                                                   Word<NoiseCovariance>{"equal", NoiseCovariance::equal}};
constexpr std::span<const Word<NoiseCovariance>> words_of(NoiseCovariance) { return noise_covariance_words; }

[[nodiscard]] constexpr NoiseCovariance resolved(NoiseCovariance asked, Index outputs) {
  constexpr Index most_full = 6;
  if (asked != NoiseCovariance::automatic) return asked;
  return outputs <= most_full ? NoiseCovariance::full : NoiseCovariance::diagonal;
}

}  // namespace unshuffle
