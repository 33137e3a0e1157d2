// A checksum inside the file it is of: a checkpoint in which a bit has flipped must not pass for another answer.
#pragma once

#include <string>
#include <string_view>

namespace unshuffle {

/// The text of a JSON object, which may have more behind it, with the checksum of all the rest as its first key.
[[nodiscard]] std::string with_checksum(std::string_view object);

/// Whether the content begins with a checksum, and that is the one of the rest.
[[nodiscard]] bool checksum_holds(std::string_view content);

}  // namespace unshuffle
