// Any bytes as the files of a MOTChallenge folder: read, or refused with BadData, never worse.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unshuffle/error.hpp"
#include "unshuffle/tracking/sequence.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto try_to = [](const auto& read) {
    try {
      read();
    } catch (const BadData&) {
    }
  };
  try_to([&] { (void)tracking::parse_sequence_info(content, "fuzzed/seqinfo.ini"); });
  try_to([&] { (void)tracking::parse_detections(content, "fuzzed/det.txt", {}); });
  try_to([&] { (void)tracking::to_mot(tracking::parse_labels(content, "fuzzed/gt.txt").frames, true); });
  return 0;
}
