#include "verdict/recurrence.hpp"

#include <fmt/format.h>

#include <cmath>

#include "starts/distance.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

Identifiability said_by_starts(const std::vector<Ending>& endings, const Problem& problem, const Model& bound) {
  constexpr double another = 0.1;    // difference of predictions, in sd of y
  constexpr double rounding = 1e-6;  // of the objective: descents end when it changes by less
  Identifiability made;
  if (endings.size() < 2) return made;
  const PredictiveDistance distance(problem, bound);
  const Ending& best = endings.front();
  const Ending* next = nullptr;
  int hits = 0;
  for (const Ending& ending : endings) {
    const bool same = distance(ending.parameters, best.parameters) < another;
    hits += same ? 1 : 0;
    if (!same && (next == nullptr || ending.objective < next->objective)) next = &ending;
  }
  if (next == nullptr) return made;
  const bool as_good = next->objective - best.objective <= rounding * std::abs(best.objective);
  if (as_good) {
    made.reason = fmt::format(
        "two solutions that predict differently are equally good to rounding (objectives {:.10g} and {:.10g}); which "
        "of "
        "them comes out hangs on the last digits of the arithmetic",
        best.objective, next->objective);
  } else if (hits == 1) {
    made.reason = fmt::format(
        "one of {} starts led to this solution, the others elsewhere (next best objective {:.6g}, here {:.6g}); "
        "another "
        "seed, or another processor that rounds differently, may lead to another one",
        endings.size(), next->objective, best.objective);
  }
  if (!made.reason.empty())
    made.advice = fmt::format("try more starts ({}), or {}, which judges whether the data can tell", option("starts"),
                              option("method", "entropic"));
  return made;
}

}  // namespace unshuffle
