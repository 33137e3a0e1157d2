// Slips of the keyboard: unknown commands and options, with the nearest one there is.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace unshuffle::app {

/// What is wrong with the first command or option on the line that the program does not have; none: it has them all.
[[nodiscard]] std::optional<std::string> unknown_word(const CLI::App& root, const std::vector<std::string>& arguments);

}  // namespace unshuffle::app
