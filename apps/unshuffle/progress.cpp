#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace unshuffle::app {

std::function<bool(double, double)> progress_bar(bool quiet) {
  if (quiet || ::isatty(STDERR_FILENO) == 0) return {};
  return [last = -1](double done, double total) mutable {
    const int percent = total > 0 ? static_cast<int>(100 * std::min(1.0, done / total)) : 0;
    if (percent == last) return true;
    last = percent;
    fmt::print(stderr, "\r[{:<40}] {:3d} %", std::string(static_cast<std::size_t>(percent) * 2 / 5, '#'), percent);
    if (percent >= 100) fmt::print(stderr, "\r{:60}\r", "");
    std::fflush(stderr);
    return true;
  };
}

}  // namespace unshuffle::app
