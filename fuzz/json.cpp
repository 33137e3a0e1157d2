// Any bytes as the project's own JSON files (fits, tracker models, checkpoints): read, or refused, never worse.
#include <cstddef>
#include <cstdint>
#include <string>

#include "unshuffle/error.hpp"
#include "unshuffle/report/json.hpp"
#include "unshuffle/tracking/model_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string content(reinterpret_cast<const char*>(data), size);
  const auto try_to = [](const auto& read) {
    try {
      read();
    } catch (const BadData&) {
    }
  };
  try_to([&] { (void)fit_from_json(content, "fuzzed.json"); });
  try_to([&] { (void)parameters_from_json(content, "fuzzed.json"); });
  try_to([&] { (void)tracking::to_json(tracking::model_from_json(content, "fuzzed.json")); });
  try_to([&] { (void)tracking::state_from_json(content, "fuzzed.json", "a video"); });
  return 0;
}
