// Ends a long computation from outside. Progress tells when a fit may be ended with what it has found so far; this ends
// it wherever it is, with nothing.
#pragma once

#include <atomic>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What a computation ends with that was told to stop.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped before it was done", 1) {}
};

/// While it lives, computations of this thread, and of those that they share their work with, end with Stopped once
/// `asked` is true.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>* asked);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// That of this thread; none: nobody will ask.
  [[nodiscard]] static const std::atomic<bool>* current();

 private:
  const std::atomic<bool>* before_;
};

/// Throws Stopped when this thread's computation was told to stop. Not from within a parallel loop of OpenMP.
void stop_if_asked();

}  // namespace unshuffle
