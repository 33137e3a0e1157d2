// Any bytes as the pickle of a state dictionary: walked through, or refused, never worse.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pixels/pickle_depth.hpp"
#include "refusal.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] { unshuffle::pixels::require_shallow_pickle(content, "fuzzed.pt"); });
  return 0;
}
