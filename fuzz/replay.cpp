// The fuzz targets without libFuzzer: every file of a folder, then random changes to them. For any compiler, and short
// enough for every test run.
//
// Usage: replay_TARGET FOLDER RUNS SEED
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

/// A byte, a number, a stretch: changed, removed, doubled, or taken from another file.
std::string changed(std::string bytes, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](std::size_t count) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(count, 1));
  };
  static const std::vector<std::string> interesting{
      "-1", "0", "99999999999999999999", "nan", "1e308", "\"", "\r\n", "{", "[", "%n%s", std::string(1, '\0'), "../"};
  for (std::size_t left = 1 + below(4); left > 0; --left) {
    const std::size_t at = below(bytes.size() + 1), length = below(std::min<std::size_t>(bytes.size() - at, 32) + 1);
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 3:
        bytes.insert(at, interesting[below(interesting.size())]);
        break;
      case 4:
        bytes.replace(at, length, interesting[below(interesting.size())]);
        break;
      default: {
        const std::size_t from = below(other.size() + 1);
        bytes.insert(at, other.substr(from, below(64)));
      }
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s FOLDER RUNS SEED\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    run(files.back());
  }
  if (files.empty()) {
    std::fprintf(stderr, "%s: holds no files\n", argv[1]);
    return 2;
  }
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  const long runs = std::strtol(argv[2], nullptr, 10);
  for (long k = 0; k < runs; ++k) {
    run(changed(files[random() % files.size()], files[random() % files.size()], random));
  }
  std::printf("%zu files and %ld changes to them\n", files.size(), runs);
  return 0;
}
