// State dictionaries: what torch.save(model.state_dict(), file) writes in Python, read and written without Python.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>

namespace unshuffle::pixels {

using StateDictionary = std::map<std::string, torch::Tensor>;

/// Throws BadData naming `source`.
[[nodiscard]] StateDictionary read_state(const std::string& content, const std::string& source);

[[nodiscard]] std::string write_state(const StateDictionary& state);

}  // namespace unshuffle::pixels
