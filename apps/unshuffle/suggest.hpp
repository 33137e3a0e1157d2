// Slips of the keyboard: unknown commands and options, with the nearest one there is.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unshuffle::app {

/// The candidate that fewest letters to insert, remove, replace or swap lead to; none: all are too far away to be
/// meant.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// What is wrong with the first command or option on the line that the program does not have; none: it has them all.
[[nodiscard]] std::optional<std::string> unknown_word(const CLI::App& root, const std::vector<std::string>& arguments);

}  // namespace unshuffle::app
