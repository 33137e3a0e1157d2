// Arbitrary bytes as an FCS file are read or rejected with BadData, without crashing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/cytometry/fcs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  try {
    cytometry::FcsFile file =
        cytometry::parse_fcs(std::string_view(reinterpret_cast<const char*>(data), size), "fuzzed.fcs");
    if (cytometry::spillover_of(file)) cytometry::compensate(file);
    (void)cytometry::event_table(std::move(file), {.scales = {{"", "logicle"}}});
  } catch (const BadData&) {
  }
  return 0;
}
