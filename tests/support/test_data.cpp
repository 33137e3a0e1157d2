#include "support/test_data.hpp"

namespace unshuffle {

std::filesystem::path test_data(std::string_view name) { return std::filesystem::path(UNSHUFFLE_TEST_DATA) / name; }

}  // namespace unshuffle
