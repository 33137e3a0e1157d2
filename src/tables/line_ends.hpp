// Where lines end: behind a line feed, a carriage return, or the pair of them.
#pragma once

#include <cstddef>
#include <string_view>

namespace unshuffle {

/// Whether a line ends behind the byte at `at`. A carriage return at the very end of the text ends one: whoever cuts a
/// text must not cut between the two bytes of a pair.
[[nodiscard]] inline bool line_ends_at(std::string_view text, std::size_t at) {
  return text[at] == '\n' || (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] != '\n'));
}

/// Lines that end behind one of the first `size` bytes; the text may go on, so that a pair can be told.
[[nodiscard]] inline long count_line_ends(std::string_view text, std::size_t size) {
  long count = 0;
  for (std::size_t at = 0; at + 1 < size; ++at)  // without branches, so that it is done in vectors
    count += static_cast<long>(text[at] == '\n') +
             (static_cast<long>(text[at] == '\r') & static_cast<long>(text[at + 1] != '\n'));
  return size == 0 ? 0 : count + static_cast<long>(line_ends_at(text, size - 1));
}

[[nodiscard]] inline long count_line_ends(std::string_view text) { return count_line_ends(text, text.size()); }

/// Where the next line begins after `from`; npos: no line ends from there on.
[[nodiscard]] inline std::size_t next_line(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at)
    if (line_ends_at(text, at)) return at + 1;
  return std::string_view::npos;
}

}  // namespace unshuffle
