#include "progress.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace unshuffle::app {

namespace {

using Clock = std::chrono::steady_clock;

std::string in_words(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  if (seconds < 3600) return fmt::format("{:.0f} min {:.0f} s", std::floor(seconds / 60), std::fmod(seconds, 60));
  return fmt::format("{:.0f} h {:.0f} min", std::floor(seconds / 3600), std::fmod(seconds, 3600) / 60);
}

/// The bar, its speed and the estimated time left.
std::string line_of(double done, double total, double seconds) {
  const double share = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
  std::string line = fmt::format("[{:<30}] {:3.0f} %", std::string(static_cast<std::size_t>(30 * share), '#'),
                                 std::floor(100 * share));
  if (done > 0 && seconds > 0.5) {
    line += fmt::format(", {:.3g}/s, {} left", done / seconds, in_words(seconds * (total - done) / done));
  }
  return line;
}

/// One line on the terminal that shows within a second that the program is at work, whether or not it has steps to
/// count.
class ProgressLine {
 public:
  ProgressLine() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are for the thread that does the work
    ticker_ = std::thread([this] { tick(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~ProgressLine() {
    {
      const std::lock_guard guard(mutex_);
      over_ = true;
      show("");
    }
    changed_.notify_all();
    ticker_.join();
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void report(double done, double total) {
    const std::lock_guard guard(mutex_);
    done_ = done;
    total_ = total;
    show(text());
  }

 private:
  [[nodiscard]] std::string text() const {
    const auto since = [](Clock::time_point then) {
      return std::chrono::duration<double>(Clock::now() - then).count();
    };
    if (done_ > 0 && done_ >= total_) return "";
    return done_ > 0 ? line_of(done_, total_, since(begin_)) : fmt::format("working, {}", in_words(since(begin_)));
  }

  void tick() {
    std::unique_lock guard(mutex_);
    while (!changed_.wait_for(guard, std::chrono::seconds(1), [&] { return over_; })) show(text());
  }

  void show(const std::string& line) {
    if (line == shown_) return;
    shown_ = line;
    fmt::print(stderr, "\r{:<78}\r{}", line, line);
    std::fflush(stderr);
  }

  Clock::time_point begin_ = Clock::now();
  double done_ = 0, total_ = 0;
  bool over_ = false;
  std::string shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread ticker_;
};

}  // namespace

std::function<bool(double, double)> progress_bar(bool quiet) {
  if (quiet || ::isatty(STDERR_FILENO) == 0) return {};
  return [line = std::make_shared<ProgressLine>()](double done, double total) {
    line->report(done, total);
    return true;
  };
}

}  // namespace unshuffle::app
