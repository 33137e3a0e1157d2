#include "unshuffle/core/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

[[noreturn]] void fail(const std::string& path, int reason) {
  throw SystemFailure(fmt::format("{}: cannot be written: {}", path, std::strerror(reason)));
}

/// Names of files being written, kept where a signal handler can read them.
struct UnfinishedFile {
  std::atomic<bool> taken{false};
  std::atomic<bool> there{false};
  char path[4096];
};
std::array<UnfinishedFile, 16> unfinished_files;

UnfinishedFile* remember_unfinished(const std::string& path) {
  for (UnfinishedFile& file : unfinished_files) {
    if (path.size() >= sizeof file.path || file.taken.exchange(true)) continue;
    std::memcpy(file.path, path.c_str(), path.size() + 1);
    file.there = true;
    return &file;
  }
  return nullptr;  // a signal may then leave it behind; nothing worse
}

void forget_unfinished(UnfinishedFile* file) {
  if (file == nullptr) return;
  file->there = false;
  file->taken = false;
}

/// Owns a descriptor, and its file until that is renamed into place.
class Descriptor {
 public:
  Descriptor(int descriptor, std::string temporary)
      : descriptor_(descriptor),
        temporary_(std::move(temporary)),
        unfinished_(temporary_.empty() ? nullptr : remember_unfinished(temporary_)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    forget_unfinished(unfinished_);
  }

  void write(std::string_view content, const std::string& path) const {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path, errno);
      content.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void close(const std::string& path) {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0) fail(path, errno);
  }
  void sync(const std::string& path) const {
    if (::fsync(descriptor_) != 0) fail(path, errno);
  }
  void move_to(const std::string& target, const std::string& path) {
    if (::rename(temporary_.c_str(), target.c_str()) != 0) fail(path, errno);
    temporary_.clear();
  }
  void set_mode(mode_t mode) const { ::fchmod(descriptor_, mode); }

 private:
  int descriptor_;
  std::string temporary_;
  UnfinishedFile* unfinished_;
};

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return static_cast<mode_t>(0666) & ~mask;
}

/// Devices and pipes have no sibling to write to. /dev/stdout counts as one even when it leads to a regular file.
bool is_device(const std::string& path, const struct stat& existing) {
  return !S_ISREG(existing.st_mode) || path.starts_with("/dev/");
}

/// The path with symbolic links resolved, so that renaming replaces the file and not the link.
std::string resolved(const std::string& path) {
  std::error_code failure;
  const auto whole = std::filesystem::absolute(path, failure);
  const auto target = failure ? whole : std::filesystem::weakly_canonical(whole, failure);
  return failure ? path : target.string();
}

Descriptor open_temporary(const std::string& target, const std::string& path) {
  if (path.empty()) throw SystemFailure("the name of an output file is empty");
  std::string name = target + ".XXXXXX";
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) fail(path, errno);
  return {descriptor, name};
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view content) {
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) fail(path, EISDIR);
  if (exists && is_device(path, existing)) {
    const int opened = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (opened < 0) fail(path, errno);
    Descriptor device(opened, {});
    device.write(content, path);
    return device.close(path);
  }
  const std::string target = resolved(path);
  Descriptor file = open_temporary(target, path);
  file.write(content, path);
  file.set_mode(exists ? existing.st_mode & static_cast<mode_t>(07777) : default_mode());
  file.sync(path);
  file.close(path);
  file.move_to(target, path);
}

void remove_unfinished_files() noexcept {
  for (UnfinishedFile& file : unfinished_files)
    if (file.there) ::unlink(file.path);
}

void make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) throw SystemFailure(fmt::format("{}: cannot be created: {}", path, failure.message()));
}

bool same_output(const std::string& one, const std::string& other) {
  struct stat existing {};
  const bool exists = ::stat(one.c_str(), &existing) == 0;
  return !(exists && is_device(one, existing)) && resolved(one) == resolved(other);
}

void require_writable(const std::string& path) {
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) fail(path, EISDIR);
  if (exists && is_device(path, existing)) return;
  open_temporary(resolved(path), path);
}

}  // namespace unshuffle
