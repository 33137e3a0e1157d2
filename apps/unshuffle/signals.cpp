#include "signals.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "unshuffle/data/output_file.hpp"

namespace unshuffle::app {
namespace {

[[noreturn]] void leave_with(const char* message, int exit_code) {
  remove_unfinished_files();
  (void)!::write(STDERR_FILENO, message, std::strlen(message));
  ::_exit(exit_code);
}

/// Only what is safe in a signal handler.
void on_signal(int signal) {
  leave_with(signal == SIGINT ? "unshuffle: interrupted; nothing more was written\n"
                              : "unshuffle: terminated; nothing more was written\n",
             128 + signal);
}

/// An exception cannot leave a parallel loop: memory that runs out inside of one ends here.
void on_terminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    leave_with("unshuffle: error: out of memory\n", 4);
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void leave_cleanly() {
  std::set_terminate(on_terminate);
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

}  // namespace unshuffle::app
