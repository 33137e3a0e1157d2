// Arbitrary bytes as the project's own JSON files (fits, tracker models, checkpoints) are read or rejected, without
// crashing.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/checksum.hpp"
#include "refusal.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/tracking/model_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unshuffle;
  const std::string content(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    const Fitted fit = Fitted::from_json(content, "fuzzed.json");
    const ColumnChoice& columns = fit.context().columns;
    const Matrix x = Matrix::Ones(1, Index(columns.x->size())), z = Matrix::Ones(1, Index(columns.z->size()));
    if (fit.result().covariance.size() > 0)
      (void)fit.predict_with_errors(x, z);
    else
      (void)fit.predict(x, z);
  });
  read_or_refuse([&] { (void)parameters_from_json(content, "fuzzed.json"); });
  read_or_refuse([&] { (void)tracking::to_json(tracking::model_from_json(content, "fuzzed.json")); });
  if (content.empty()) return 0;
  read_or_refuse([&] { (void)tracking::state_from_json(with_checksum(content), "fuzzed.json", "a video"); });
  return 0;
}
