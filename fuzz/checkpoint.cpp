// Arbitrary bytes as the checkpoint of a fit are read or rejected, without crashing.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/checkpoint.hpp"
#include "core/checksum.hpp"
#include "estimators/each_start.hpp"
#include "refusal.hpp"
#include "unshuffle/version.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string content(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] { (void)finished_work_in(content, "fuzzed", "0123456789abcdef"); });
  if (content.empty()) return 0;
  read_or_refuse([&] {  // with a checksum that holds, as what is behind it is otherwise never reached
    for (const auto& [key, result] : finished_work_in(with_checksum(content), "fuzzed", "0123456789abcdef")) {
      try {
        (void)unpacked(result);
      } catch (const std::exception&) {  // finished_or() makes BadData of it
      }
    }
  });
  return 0;
}
