// Long work on a thread of its own, while the one that was asked for it answers to Ctrl-C and calls the user's
// function.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace unshuffle::python {

class AttendedWork {
 public:
  using Say = std::function<bool(double, double)>;

  /// `callback` is called with (done, total) and ends the work early by returning False; None: nobody is told.
  explicit AttendedWork(nanobind::object callback) : callback_(std::move(callback)) {}

  /// Call it without the interpreter's lock. Throws what the work throws.
  void run(const std::function<void(const Say&)>& work);
  /// Raises what Python raised meanwhile; with the interpreter's lock.
  void rethrow() const;

 private:
  void attend();
  bool look(const std::optional<std::pair<double, double>>& said);
  bool ask(double done, double total);

  nanobind::object callback_;
  std::exception_ptr raised_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::pair<double, double>> said_;  // by the work, and not yet answered
  bool go_on_ = true;
  bool finished_ = false;
};

}  // namespace unshuffle::python
