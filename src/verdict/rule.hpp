// A verdict as a table of rules; the first that holds applies.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle {

struct Rule {
  bool holds;
  Verdict verdict;
  std::function<std::string()> reason;
  std::function<std::string()> advice = [] { return std::string(); };
};

/// The last of the rules always holds.
[[nodiscard]] inline Identifiability first_that_holds(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    if (rule.holds) return {rule.verdict, rule.reason(), rule.advice(), {}};
  }
  return {};
}

// A prediction whose standard error is d standard deviations of the noise has an error √(1 + d²) times that of the
// regression that knows all links: 1.08 and 1.17 times here. `scripts/suite.py --calibrate` shows what other limits
// would do.
inline constexpr double known_well = 0.42, known_at_all = 0.6;

// Nats by which the answer has to be ahead of any other solution, and of one that differs only by a symmetry of the
// features: odds of 20 and of 3000 to one.
inline constexpr double decided_gap = 3, certain_gap = 8;

}  // namespace unshuffle
