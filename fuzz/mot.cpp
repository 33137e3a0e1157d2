// Arbitrary bytes as the files of a MOTChallenge folder are read or rejected with BadData, without crashing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "refusal.hpp"
#include "unshuffle/tracking/sequence.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] { (void)tracking::parse_sequence_info(content, "fuzzed/seqinfo.ini"); });
  read_or_refuse([&] { (void)tracking::parse_detections(content, "fuzzed/det.txt", {}); });
  read_or_refuse([&] { (void)tracking::to_mot(tracking::parse_labels(content, "fuzzed/gt.txt").frames, true); });
  return 0;
}
