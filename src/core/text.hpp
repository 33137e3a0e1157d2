// Text from files of others: numbers, names and what may be shown of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unshuffle {

/// A finite number, with a sign of either kind or none; none: the text is anything else. What is too small is 0.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// The text itself where it is UTF-8, and else with every byte taken for a character of Latin-1: older files, and names
/// of folders, are seldom anything else.
[[nodiscard]] std::string as_utf8(std::string_view text);

/// For a terminal: control characters, and bytes that are no UTF-8, as \x1b; line ends stay.
[[nodiscard]] std::string printable(std::string_view text);

/// The candidate that a misspelt word most likely stands for: few letters apart, whatever their case; none: all are
/// far.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean age?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// A file name made of a name that was read: whatever it holds, the file lies in the folder it is put into.
[[nodiscard]] std::string file_name_for(std::string_view name);

}  // namespace unshuffle
