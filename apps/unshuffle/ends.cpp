#include "ends.hpp"

#include <fcntl.h>
#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "unshuffle/core/memory.hpp"
#include "unshuffle/core/output_file.hpp"

namespace unshuffle::app {
namespace {

/// Ends the process, with the message of the first thread that gets here.
[[noreturn]] void leave_with(const char* message, int exit_code) {
  static std::atomic_flag begun;
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // a handler on top of this would wait for it
  while (begun.test_and_set()) ::pause();
  remove_unfinished_files();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, std::strlen(message));
  ::_exit(exit_code);
}

/// Only what is safe in a signal handler.
void on_signal(int signal) {
  leave_with(signal == SIGINT   ? "unshuffle: interrupted; nothing more was written\n"
             : signal == SIGHUP ? "unshuffle: the terminal is gone; nothing more was written\n"
                                : "unshuffle: terminated; nothing more was written\n",
             128 + signal);
}

/// The C library found its heap corrupted, or an exception was not caught. Running out of memory while an Eigen 3.4
/// matrix is resized leaves the heap in such a state: the matrix keeps a pointer to what it has freed.
void on_corruption(int) {
  leave_with("unshuffle: error: out of memory, or the heap is corrupted; nothing more was written\n", 4);
}

/// A sanitizer reports corruption better than we could.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#elif defined(__has_feature)
  return __has_feature(address_sanitizer);
#else
  return false;
#endif
}

/// An exception cannot leave a parallel loop: running out of memory inside one ends here.
void on_terminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    leave_with("unshuffle: error: out of memory\n", 4);
  } catch (...) {
  }
  std::abort();
}

/// A closed stream would give its number to the next opened file, and output would go there. Writing to standard output
/// still fails, which is reported; messages may go unread.
void keep_standard_streams() {
  for (const auto& [descriptor, mode] :
       {std::pair(STDIN_FILENO, O_RDONLY), std::pair(STDOUT_FILENO, O_RDONLY), std::pair(STDERR_FILENO, O_WRONLY)}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    if (::open("/dev/null", mode) != descriptor) ::_exit(4);  // the lowest free number is this one
  }
}

/// A signal that is ignored at the start (nohup) stays ignored.
bool is_ignored(int signal) {
  struct sigaction before {};
  return ::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
}

}  // namespace

void leave_cleanly() {
  keep_standard_streams();
  std::set_terminate(on_terminate);
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) ::sigaction(signal, &action, nullptr);
  if (!sanitized()) {
    for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, on_corruption);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit is then a write error with a message
}

void prepare_for_limited_memory(char** argv) {
  if (!memory_is_limited()) return;
  // An OpenBLAS thread that gets no memory retries forever, and program exit waits for it. This library never uses
  // those threads, but they start when OpenBLAS is loaded, so the environment must disable them first.
  if (::getenv("OPENBLAS_NUM_THREADS") == nullptr) {
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
    ::execv("/proc/self/exe", argv);
  }
  const int threads = omp_get_max_threads();
  rlimit stack{};
  ::getrlimit(RLIMIT_STACK, &stack);
  constexpr std::size_t usual_stack = std::size_t{8} << 20U, margin = std::size_t{64} << 20U;
  const std::size_t each =
      stack.rlim_cur == RLIM_INFINITY ? usual_stack : std::max<std::size_t>(stack.rlim_cur, usual_stack);
  const std::size_t wanted = static_cast<std::size_t>(threads) * each + margin;
  if (!has_room_for(wanted)) leave_with("unshuffle: error: out of memory\n", 4);
  std::atomic<int> started = 0;  // a region that does nothing would be compiled away, and with it the threads
#pragma omp parallel num_threads(threads)
  ++started;
}

}  // namespace unshuffle::app
