// Any bytes as the project's own JSON files (fits, tracker models, checkpoints): read, or refused, never worse.
#include <cstddef>
#include <cstdint>
#include <string>

#include "refusal.hpp"
#include "unshuffle/report/json.hpp"
#include "unshuffle/tracking/model_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string content(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] { (void)fit_from_json(content, "fuzzed.json"); });
  read_or_refuse([&] { (void)parameters_from_json(content, "fuzzed.json"); });
  read_or_refuse([&] { (void)tracking::to_json(tracking::model_from_json(content, "fuzzed.json")); });
  read_or_refuse([&] { (void)tracking::state_from_json(content, "fuzzed.json", "a video"); });
  return 0;
}
