#include "attended_work.hpp"

#include <omp.h>

#include <chrono>
#include <thread>

#include "unshuffle/core/stop.hpp"

namespace unshuffle::python {

namespace nb = nanobind;

void AttendedWork::run(const std::function<void(const Say&)>& work) {
  const int threads = omp_get_max_threads();  // a limit that somebody set is one of this thread
  std::exception_ptr failure;
  std::thread worker([&] {
    omp_set_num_threads(threads);
    try {
      const StopScope scope(&stop_);
      work([this](double done, double total) { return ask(done, total); });
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  });
  attend();
  worker.join();
  if (failure && !raised_) std::rethrow_exception(failure);
}

void AttendedWork::rethrow() const {
  if (raised_) std::rethrow_exception(raised_);
}

void AttendedWork::attend() {
  constexpr std::chrono::milliseconds between_looks{100};
  std::unique_lock lock(mutex_);
  while (!finished_) {
    changed_.wait_for(lock, between_looks, [&] { return finished_ || said_; });
    if (finished_) return;
    const auto said = said_;
    lock.unlock();
    const bool go_on = look(said);
    lock.lock();
    if (!said) continue;
    go_on_ = go_on_ && go_on;
    said_.reset();
    changed_.notify_all();
  }
}

/// Whether the work may go on.
bool AttendedWork::look(const std::optional<std::pair<double, double>>& said) {
  if (raised_) return false;
  const nb::gil_scoped_acquire locked;
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return !said || !callback_(said->first, said->second).is(nb::bool_(false));
  } catch (...) {
    raised_ = std::current_exception();
    stop_ = true;
    return false;
  }
}

/// Waits for the answer, so that a function that wants to stop the work stops it there.
bool AttendedWork::ask(double done, double total) {
  if (callback_.is_none()) return true;
  std::unique_lock lock(mutex_);
  if (!go_on_) return false;  // a method that runs others is told so by each of them again
  said_ = {done, total};
  changed_.notify_all();
  changed_.wait(lock, [&] { return !said_; });
  return go_on_;
}

}  // namespace unshuffle::python
