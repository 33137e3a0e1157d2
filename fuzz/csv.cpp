// Arbitrary bytes as a CSV file are read or rejected with BadData, without crashing; what was read survives a round
// trip.
#include <cstddef>
#include <cstdint>
#include <string>

#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string content(reinterpret_cast<const char*>(data), size);
  try {
    const Table table = parse_csv(content, "fuzzed.csv", size % 2 == 0 ? KeepText::where_needed : KeepText::always);
    if (parse_csv(to_csv(table), "written.csv").rows != table.rows) __builtin_trap();
  } catch (const BadData&) {
  }
  return 0;
}
