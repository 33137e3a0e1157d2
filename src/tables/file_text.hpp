// From the bytes of a file to text: compression and encodings are undone, files of other kinds are named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unshuffle {

/// The text of a file in UTF-8, without a byte order mark.
struct FileText {
  std::string converted{};            ///< Holds the text if it is not part of the bytes themselves.
  std::string_view unchanged{};       ///< Part of the bytes, which must outlive it; empty: see `converted`.
  std::vector<std::string> undone{};  ///< What was undone, in words: "gzip", "Latin-1".

  [[nodiscard]] std::string_view view() const { return converted.empty() ? unchanged : std::string_view(converted); }
};

/// Whether the bytes are those of a gzip or zstd file.
[[nodiscard]] bool is_compressed(std::string_view bytes);

/// Throws BadData for files that hold no text, saying what they are and what to do.
[[nodiscard]] FileText text_of_file(std::string_view bytes, const std::string& source);

}  // namespace unshuffle
