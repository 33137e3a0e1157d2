// How a fit is carried out, whatever the estimator. Only the seed affects the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

class Team;

struct Execution {
  std::uint64_t seed = 0;  ///< Of everything random.
  int threads = 0;         ///< 0: all. Same answer for any number.

  /// File that stores finished starts, refinements and bootstrap samples; an interrupted fit resumes from it with
  /// bit-identical results. Empty: none. Not for tables in pieces.
  std::string checkpoint{};

  /// Processes that all call fit() with the same arguments and all rows, and share the work; all get the same answer.
  /// Must outlive the fit; null: this process alone. Only the leader's progress and checkpoint are used, and progress
  /// cannot stop the others.
  Team* team = nullptr;

  /// Called with (done, total) units of work from the calling thread; return false to stop early.
  std::function<bool(double, double)> progress{};

  Dialect dialect = Dialect::cpp;  ///< How messages spell options.
};

}  // namespace unshuffle
