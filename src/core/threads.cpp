#include "core/threads.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {
namespace {

int processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

/// Starts so many at once and ends them again.
void require_startable(int threads, const std::string& asked) {
  std::latch all_tried(1);
  std::vector<std::jthread> started;
  std::string obstacle;
  try {
    started.reserve(static_cast<std::size_t>(threads));
    while (static_cast<int>(started.size()) < threads) started.emplace_back([&] { all_tried.wait(); });
  } catch (const std::system_error& error) {
    obstacle = error.code().message();
  }
  all_tried.count_down();
  if (!obstacle.empty())
    throw SystemFailure(
        fmt::format("{}: only {} threads could be started: {}; ask for fewer", asked, started.size(), obstacle));
}

}  // namespace

void require_threads(int threads) {
  const int most = std::max(1024, processors());
  const int meant = threads == 0 ? omp_get_max_threads() : threads;
  const std::string asked =
      threads == 0 ? fmt::format("OMP_NUM_THREADS = {}", meant) : fmt::format("{} = {}", option("threads"), threads);
  if (threads < 0 || meant > most) throw InvalidInput(fmt::format("{} must be at least 0 and at most {}", asked, most));
  if (meant > processors()) require_startable(meant, asked);
}

}  // namespace unshuffle
