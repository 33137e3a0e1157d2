// Time and peak memory of a piece of work, in a separate process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace measure {

template <class Work>
double seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <class Work>
double median_seconds(int repeats, Work work) {
  std::vector<double> times;
  for (int k = 0; k < repeats; ++k) times.push_back(seconds(work));
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)];
}

/// The largest resident size of this process so far, in MB.
inline double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  return 0;
}

/// From here on this thread takes numbers below 1e-308 for zero, which x86 processors otherwise handle slowly.
inline void flush_denormals() {
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

template <class Answer>
struct Measured {
  Answer answer;
  double megabytes;  ///< Growth of the peak, inputs included.
};

/// Runs `work` in a child process; its answer must be plain data. The parent must not have started threads.
template <class Work>
auto in_own_process(Work work) -> Measured<decltype(work())> {
  using Result = Measured<decltype(work())>;
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    const double before = peak_megabytes();
    Result result{work(), 0};
    result.megabytes = peak_megabytes() - before;
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  Result result;
  const bool complete = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!complete || status != 0) throw std::runtime_error("a measured process failed");
  return result;
}

}  // namespace measure
