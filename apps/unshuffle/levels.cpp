#include "levels.hpp"

#include <unistd.h>

#include <filesystem>

#include "core/processor.hpp"

namespace unshuffle::app {

void run_fastest_build([[maybe_unused]] char** argv) {
#ifdef UNSHUFFLE_LEVELS_FROM_PROGRAM
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return;
  for (const std::string& level : processor_levels()) {
    const auto faster = program.parent_path() / UNSHUFFLE_LEVELS_FROM_PROGRAM / level / "unshuffle";
    ::execv(faster.c_str(), argv);  // returns if it is not there
  }
#endif
}

}  // namespace unshuffle::app
