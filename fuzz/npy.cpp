// Arbitrary bytes as a .npy file are read or rejected with BadData, without crashing, and never give a table larger
// than the file.
#include <cstddef>
#include <cstdint>
#include <string>

#include "refusal.hpp"
#include "unshuffle/tables/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    const unshuffle::Table table = unshuffle::parse_npy(bytes, "fuzzed.npy");
    if (static_cast<std::size_t>(table.rows) * table.columns.size() > size) __builtin_trap();
  });
  return 0;
}
