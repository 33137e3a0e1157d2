// How a fit is carried out, whichever estimator makes it. Only the seed has a say in the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/wording.hpp"

namespace UNSHUFFLE_EXPORT unshuffle {

class Team;

struct Execution {
  std::uint64_t seed = 0;  ///< Of everything random.
  int threads = 0;         ///< 0: all. Same answer for any number.

  /// File in which finished starts, refinements and bootstrap samples are kept; the same fit goes on from it after it
  /// was cut off, to the same bits. Empty: none. Not for tables in pieces.
  std::string checkpoint{};

  /// Processes that call fit() alike, each with all rows, and share the work; all get the same answer. Must outlive the
  /// fit; none: this process alone. Only the leader's progress and checkpoint are used, and progress cannot stop them.
  Team* team = nullptr;

  /// Called with (done, total) units of work from the calling thread; return false to stop early.
  std::function<bool(double, double)> progress{};

  Dialect dialect = Dialect::cpp;  ///< In whose terms messages name options.
};

}  // namespace unshuffle
