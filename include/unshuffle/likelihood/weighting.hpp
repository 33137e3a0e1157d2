// How regression on rows in order is adjusted for a stated rate of wrong links.
#pragma once

#include <array>
#include <span>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What multiplies the difference between a response and its mean over the rows its link may point to.
enum class Weighting {
  ratio,          ///< The features as they are linked.
  lahiri_larsen,  ///< Their mean over the rows the link may point to.
  blue,           ///< The slope of that mean response over its variance: the best linear unbiased estimate.
};
inline constexpr std::array weighting_words{Word<Weighting>{"ratio", Weighting::ratio},
                                            Word<Weighting>{"lahiri-larsen", Weighting::lahiri_larsen},
                                            Word<Weighting>{"blue", Weighting::blue}};
constexpr std::span<const Word<Weighting>> words_of(Weighting) { return weighting_words; }

}  // namespace unshuffle
