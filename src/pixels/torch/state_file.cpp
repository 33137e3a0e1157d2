#include "pixels/torch/state_file.hpp"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/unpickler.h>
#include <torch/serialize.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string_view>

#include "core/text.hpp"
#include "pixels/pickle_depth.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::pixels {
namespace {

/// A pickled state dictionary is a collections.OrderedDict with an attribute `_metadata` (versions of modules), which
/// libtorch's reader supports neither. This rewrites the pickle in opcodes it supports: the class is not called but
/// placed beside an empty dictionary, which is filled; instead of setting the attribute the two become a pair. Of a
/// checkpoint of training, {"epoch": ..., "state_dict": ..., "optimizer": ...}, only the state dictionary is kept.
std::string in_plain_words(std::string pickle) {
  using namespace std::string_view_literals;
  constexpr auto protocol = "\x80\x02"sv;
  constexpr auto ordered = "ccollections\nOrderedDict\nq"sv;
  constexpr auto call = ")R"sv;
  constexpr auto empty_dictionary = "}"sv;
  constexpr auto pair_and_stop = "\x86."sv;
  const std::size_t entry = pickle.find("X\x0a\0\0\0state_dictq"sv);
  const bool inside = entry != std::string::npos && pickle.starts_with("\x80\x02}"sv);
  const std::size_t start = inside ? entry + 17 : protocol.size();
  const std::size_t called = start + ordered.size() + 1;
  if (pickle.compare(start, ordered.size(), ordered) != 0 || pickle.compare(called, call.size(), call) != 0) {
    return pickle;
  }
  pickle.replace(called, call.size(), empty_dictionary);
  pickle.erase(protocol.size(), start - protocol.size());
  const std::size_t attribute = pickle.find("X\x09\0\0\0_metadata"sv);
  // Before it the attributes' dictionary is begun and remembered, under a number of four bytes or of one.
  const std::size_t begun = attribute < 6 || pickle.compare(attribute - 6, 2, "}r") != 0 ? 3 : 6;
  pickle.resize(attribute == std::string::npos ? pickle.size() - 1 : attribute - begun);
  return pickle.append(pair_and_stop);
}

/// Bytes of every record of the archive that a tensor was made of, by where they lie.
using Storages = std::map<const void*, std::size_t>;

c10::IValue unpickle(const std::string& content, const std::string& source, Storages& storages) {
  std::istringstream stream(content);
  caffe2::serialize::PyTorchStreamReader archive(&stream);
  const auto [data, size] = archive.getRecord("data.pkl");
  const std::string pickle = in_plain_words({static_cast<const char*>(data.get()), size});
  require_shallow_pickle(pickle, source);
  std::size_t at = 0;
  const auto read = [&](char* buffer, std::size_t length) {
    const std::size_t count = pickle.copy(buffer, length, at);
    at += count;
    return count;
  };
  const auto storage = [&](const std::string& name) {
    auto [bytes, count] = archive.getRecord("data/" + name);
    storages[bytes.get()] = count;
    return std::move(bytes);
  };
  return torch::jit::Unpickler(read, nullptr, nullptr, storage, torch::kCPU).parse_ivalue();
}

/// libtorch believes what a tensor says of its size and reads on behind the end of what there is.
void require_inside(const torch::Tensor& tensor, const Storages& storages, const std::string& name,
                    const std::string& source) {
  const auto refuse = [&](const char* why) {
    throw BadData(fmt::format("{}: the tensor \"{}\" {}; the file is damaged", source, printable(name), why));
  };
  if (!tensor.defined() || tensor.layout() != torch::kStrided || tensor.is_quantized()) refuse("is not a plain one");
  const auto found = storages.find(tensor.storage().data());
  const double bytes = found == storages.end() ? 0 : static_cast<double>(found->second);
  double last = static_cast<double>(tensor.storage_offset()), count = 1;
  if (last < 0) refuse("begins before its numbers");
  for (std::int64_t k = 0; k < tensor.dim(); ++k) {
    if (tensor.size(k) < 0 || tensor.stride(k) < 0) refuse("has a size below 0");
    count *= static_cast<double>(tensor.size(k));
    last += static_cast<double>(tensor.stride(k)) * std::max(0.0, static_cast<double>(tensor.size(k)) - 1);
  }
  const auto each = static_cast<double>(tensor.element_size());
  if (count > 0 && (each * (last + 1) > bytes || each * count > bytes)) refuse("is larger than the numbers there are");
}

}  // namespace

StateDictionary read_state(const std::string& content, const std::string& source) {
  if (!content.starts_with("PK")) {
    throw BadData(
        fmt::format("{}: is not an archive of torch 1.6 or later; in Python, torch.save(torch.load(old), new) "
                    "makes one of an older file",
                    source));
  }
  try {
    Storages storages;
    c10::IValue value = unpickle(content, source, storages);
    if (value.isTuple() && value.toTupleRef().elements().size() == 2) value = value.toTupleRef().elements()[1];
    if (!value.isGenericDict()) throw BadData(fmt::format("{}: holds no state dictionary", source));
    StateDictionary state;
    for (const auto& entry : value.toGenericDict()) {
      if (!entry.key().isString() || !entry.value().isTensor()) {
        throw BadData(fmt::format("{}: holds something other than tensors by name", source));
      }
      require_inside(entry.value().toTensor(), storages, entry.key().toStringRef(), source);
      state.emplace(entry.key().toStringRef(), entry.value().toTensor());
    }
    return state;
  } catch (const c10::Error& error) {
    throw BadData(fmt::format("{}: cannot be read: {}", source, error.what_without_backtrace()));
  }
}

std::string write_state(const StateDictionary& state) {
  c10::Dict<std::string, torch::Tensor> dictionary;
  for (const auto& [name, tensor] : state) dictionary.insert(name, tensor);
  const std::vector<char> bytes = torch::pickle_save(dictionary);
  return {bytes.begin(), bytes.end()};
}

}  // namespace unshuffle::pixels
