#include "unshuffle/core/files.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

std::string read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw BadData(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  constexpr std::size_t block = 1 << 16;
  std::error_code unknown;  // Pipes have no size.
  const auto hint = std::filesystem::file_size(path, unknown);
  std::string content(unknown ? 0 : static_cast<std::size_t>(hint) + block, '\0');
  std::size_t size = 0;
  do {
    if (content.size() < size + block) content.resize(std::max(size + block, 2 * content.size()));
    size += std::fread(content.data() + size, 1, content.size() - size, file.get());
  } while (std::feof(file.get()) == 0 && std::ferror(file.get()) == 0);
  if (std::ferror(file.get()) != 0) {
    const std::string why = std::strerror(errno);
    if (errno == EISDIR) throw BadData(fmt::format("{}: cannot be read: {}", path, why));
    throw SystemFailure(fmt::format("{}: cannot be read: {}", path, why));
  }
  content.resize(size);
  return content;
}

std::string read_standard_input() {
  std::string content;
  std::array<char, 1 << 16> block{};
  while (const std::size_t size = std::fread(block.data(), 1, block.size(), stdin)) content.append(block.data(), size);
  if (std::ferror(stdin) != 0)
    throw SystemFailure(fmt::format("standard input: cannot be read: {}", std::strerror(errno)));
  if (content.empty()) throw BadData("standard input: is empty; it can be read once, so name only one table -");
  return content;
}

}  // namespace unshuffle
