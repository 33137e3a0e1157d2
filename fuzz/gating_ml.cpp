// Arbitrary bytes as a Gating-ML file, applied to a few events, are read or rejected with BadData, without crashing.
#include <cstddef>
#include <cstdint>
#include <string>

#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/gating.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  cytometry::FcsFile file;
  file.source = "events.fcs";
  for (const char* name : {"A", "B", "C"}) file.channels.push_back({.name = name, .range = 1024});
  file.keywords["$SPILLOVER"] = "2,A,B,1,0.5,0.25,1";
  file.events = (Matrix(4, 3) << 0, 0, 0, 1, 2, 3, -5, 100, 1e5, 1e300, -1e300, 7).finished();
  try {
    const cytometry::GateSet gates =
        cytometry::parse_gating_ml(std::string(reinterpret_cast<const char*>(data), size), "fuzzed.xml");
    (void)cytometry::gate_patterns(gates, cytometry::membership(gates, file));
  } catch (const BadData&) {
  }
  return 0;
}
