#include "unshuffle/core/stop.hpp"

namespace unshuffle {
namespace {

thread_local const std::atomic<bool>* asked_here = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* asked) : before_(asked_here) { asked_here = asked; }
StopScope::~StopScope() { asked_here = before_; }
const std::atomic<bool>* StopScope::current() { return asked_here; }

void stop_if_asked() {
  if (asked_here != nullptr && asked_here->load(std::memory_order_relaxed)) throw Stopped();
}

}  // namespace unshuffle
