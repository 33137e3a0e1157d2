// Where stored answers are. Only test_data.cpp is compiled with the path, so that compiler caches serve other clones.
#pragma once

#include <filesystem>
#include <string_view>

namespace unshuffle {

/// A file in tests/data, or a path from there.
std::filesystem::path test_data(std::string_view name);

}  // namespace unshuffle
