// Whether the data distinguishes the answer from other solutions.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"
#include "unshuffle/core/types.hpp"
#include "unshuffle/likelihood/what_if.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class Verdict { not_assessed, identified, weakly_identified, not_identifiable };
inline constexpr std::array verdict_words{Word<Verdict>{"not assessed", Verdict::not_assessed},
                                          Word<Verdict>{"identified", Verdict::identified},
                                          Word<Verdict>{"weakly identified", Verdict::weakly_identified},
                                          Word<Verdict>{"not identifiable", Verdict::not_identifiable}};
constexpr std::span<const Word<Verdict>> words_of(Verdict) { return verdict_words; }

/// A solution that competes with the answer.
struct Alternative {
  Vector parameters;
  double gap = 0;  ///< Nats by which it is less likely than the answer; NaN where the method has no likelihood.
  double objective = 0;
  std::string origin;  ///< The start it was reached from, or the symmetry that maps the answer to it.
};

struct Identifiability {
  Verdict verdict = Verdict::not_assessed;
  std::string reason;  ///< One sentence.
  std::string advice;  ///< One sentence; empty when there is nothing to do.
  std::vector<Alternative> alternatives;
  std::vector<WhatIf> what_if{};  ///< Empty where nothing was tried.
};

}  // namespace unshuffle
