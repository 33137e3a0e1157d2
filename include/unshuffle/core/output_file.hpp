// Output files are written atomically: complete or not at all.
#pragma once

#include <string>
#include <string_view>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// Writes a temporary file beside the target, syncs it and renames it over the target. Devices and pipes (/dev/stdout)
/// are written directly.
/// Throws SystemFailure with path and reason, and leaves neither a temporary file nor a damaged target.
void write_whole_file(const std::string& path, std::string_view content);

/// Creates the folder and its missing parents, and removes leftovers of killed runs in it. Throws SystemFailure with
/// path and reason.
void make_folder(const std::string& path);

/// Throws SystemFailure if `path` cannot be written; lets a long run fail before it starts. Removes leftovers of killed
/// runs next to it.
void require_writable(const std::string& path);

/// Whether both paths refer to the same file. Devices (/dev/stdout) accept several outputs in turn and never count as
/// the same.
[[nodiscard]] bool same_output(const std::string& one, const std::string& other);

/// Whether both paths refer to the same existing regular file, through links or different spellings.
[[nodiscard]] bool same_file(const std::string& one, const std::string& other);

/// Removes temporary files that write_whole_file() has not yet renamed, and lets no thread make another. Only for what
/// ends the process right after, such as a signal handler, where it is safe.
void remove_unfinished_files() noexcept;

}  // namespace unshuffle
