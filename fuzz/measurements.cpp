// Any bytes as measurements that `reproduce --from` reads: judged by every experiment, or refused, never worse.
#include <cstddef>
#include <cstdint>
#include <string>

#include "refusal.hpp"
#include "reproduce/experiment.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle::app;
  const std::string content(reinterpret_cast<const char*>(data), size);
  Measurements measurements;
  read_or_refuse([&] { measurements = measurements_from_csv(content, "fuzzed.csv"); });
  if (measurements.empty()) return 0;
  for (const Experiment& experiment : all_experiments()) read_or_refuse([&] { (void)experiment.judge(measurements); });
  return 0;
}
