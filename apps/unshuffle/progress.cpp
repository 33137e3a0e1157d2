#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

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

}  // namespace

std::function<bool(double, double)> progress_bar(bool quiet) {
  if (quiet || ::isatty(STDERR_FILENO) == 0) return {};
  return [begin = Clock::now(), last = std::string()](double done, double total) mutable {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const std::string line = done < total ? line_of(done, total, seconds) : "";
    if (line == last) return true;
    last = line;
    fmt::print(stderr, "\r{:<78}\r{}", line, line);
    std::fflush(stderr);
    return true;
  };
}

}  // namespace unshuffle::app
