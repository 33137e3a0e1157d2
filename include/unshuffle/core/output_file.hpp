// Output files appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace unshuffle {

/// Writes beside the target, syncs, then renames over it. Devices and pipes (/dev/stdout) are written straight to.
/// Throws SystemFailure with path and reason, and leaves neither a temporary file nor a damaged target.
void write_whole_file(const std::string& path, std::string_view content);

/// With the folders above it, where they are missing. Removes what killed runs left in it. Throws SystemFailure with
/// path and reason.
void make_folder(const std::string& path);

/// Throws SystemFailure when `path` could not be written; lets a long run fail before it starts. Removes what killed
/// runs left beside it.
void require_writable(const std::string& path);

/// Whether both paths mean one file, however they are written. Devices (/dev/stdout) take several outputs in turn and
/// are never one.
[[nodiscard]] bool same_output(const std::string& one, const std::string& other);

/// Whether both paths lead to one regular file that exists, by links of any kind or by another spelling.
[[nodiscard]] bool same_file(const std::string& one, const std::string& other);

/// Removes what write_whole_file() has begun and not yet put in its place. Safe in a signal handler that ends the
/// process.
void remove_unfinished_files() noexcept;

}  // namespace unshuffle
