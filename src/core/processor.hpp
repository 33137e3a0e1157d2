// What this processor can run beyond the lowest x86-64. Packages bring builds for it along.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace unshuffle {

/// Levels as compilers name them, the highest first; empty on other processors. UNSHUFFLE_LEVEL=x86-64-v3 in the
/// environment leaves out higher ones, UNSHUFFLE_LEVEL=x86-64 all.
inline std::vector<std::string> processor_levels() {
  std::vector<std::string> levels;
#if defined(__x86_64__) && defined(__GNUC__)
  const char* limit = std::getenv("UNSHUFFLE_LEVEL");
  const auto allowed = [limit](const char* level) { return limit == nullptr || std::strcmp(level, limit) <= 0; };
#if !defined(__clang__) && __GNUC__ >= 12
  const bool v3 = __builtin_cpu_supports("x86-64-v3"), v4 = __builtin_cpu_supports("x86-64-v4");
#else  // all of a level that processors are known to lack one by one
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
#endif
  if (v4 && allowed("x86-64-v4")) levels.emplace_back("x86-64-v4");
  if (v3 && allowed("x86-64-v3")) levels.emplace_back("x86-64-v3");
#endif
  return levels;
}

}  // namespace unshuffle
