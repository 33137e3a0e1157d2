// Compressed files, undone in memory.
#pragma once

#include <string>
#include <string_view>

namespace unshuffle {

inline constexpr std::string_view gzip_mark = "\x1f\x8b";
inline constexpr std::string_view zstd_mark = "\x28\xb5\x2f\xfd";

/// Throws BadData naming `source` if the bytes are damaged.
[[nodiscard]] std::string from_gzip(std::string_view bytes, const std::string& source);

/// As from_gzip; BadData too if this build cannot read zstd.
[[nodiscard]] std::string from_zstd(std::string_view bytes, const std::string& source);

}  // namespace unshuffle
