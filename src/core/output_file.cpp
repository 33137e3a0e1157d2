#include "unshuffle/core/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

/// Set when the process ends; no file is made from then on.
std::atomic<bool> ending{false};

/// Whoever ends the process does so without waiting for other threads. What fails now fails because of that.
void wait_for_the_end() noexcept {
  while (ending) ::pause();
}

[[noreturn]] void fail(const std::string& path, int reason) {
  wait_for_the_end();
  throw SystemFailure(fmt::format("{}: cannot be written: {}", path, std::strerror(reason)));
}

/// Names of files being written, kept where a signal handler can read them.
struct UnfinishedFile {
  enum State : unsigned char { unused, making, there };
  std::atomic<State> state{unused};
  char path[4096];
};
std::array<UnfinishedFile, 16> unfinished_files;

/// A signal handler waits for files that are being made, and would wait forever for one that its own thread is making.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

UnfinishedFile* find_unused() {
  for (UnfinishedFile& file : unfinished_files) {
    UnfinishedFile::State expected = UnfinishedFile::unused;
    if (file.state.compare_exchange_strong(expected, UnfinishedFile::making)) return &file;
  }
  return nullptr;  // a signal may then leave a file behind; nothing worse
}

/// A new file, its name noted before it exists so that no end of the process comes between. -1: see errno.
int make_noted(const std::string& path, UnfinishedFile*& noted) {
  const WithoutSignals blocked;
  noted = path.size() < sizeof noted->path ? find_unused() : nullptr;
  if (ending && noted != nullptr) noted->state = UnfinishedFile::unused;
  wait_for_the_end();
  if (noted != nullptr) std::memcpy(noted->path, path.c_str(), path.size() + 1);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const int reason = errno;
  if (noted != nullptr) noted->state = descriptor < 0 ? UnfinishedFile::unused : UnfinishedFile::there;
  if (descriptor < 0) noted = nullptr;
  errno = reason;
  return descriptor;
}

/// Owns a descriptor, and its file until that is renamed into place.
class Descriptor {
 public:
  explicit Descriptor(int descriptor, std::string temporary = {}, UnfinishedFile* noted = nullptr)
      : descriptor_(descriptor), temporary_(std::move(temporary)), noted_(noted) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    if (noted_ != nullptr) noted_->state = UnfinishedFile::unused;
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
  UnfinishedFile* noted_;
};

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return static_cast<mode_t>(0666) & ~mask;
}

/// The number of what is open already under a name such as /dev/stdout or /proc/self/fd/3; -1: the path is no such
/// name.
int descriptor_named(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const auto [end, failure] = std::from_chars(path.data() + folder.size(), path.data() + path.size(), number);
    return failure == std::errc{} && end == path.data() + path.size() ? number : -1;
  }
  return -1;
}

/// Devices and pipes have no "beside" to write to.
bool is_device(const std::string& path, const struct stat& existing) {
  return !S_ISREG(existing.st_mode) || descriptor_named(path) >= 0;
}

/// The path with symbolic links resolved, so that renaming replaces the file and not the link.
std::string resolved(const std::string& path) {
  std::error_code failure;
  const auto whole = std::filesystem::absolute(path, failure);
  const auto target = failure ? whole : std::filesystem::weakly_canonical(whole, failure);
  return failure ? path : target.string();
}

std::string folder_of(const std::string& target) {
  const auto folder = std::filesystem::path(target).parent_path();
  return folder.empty() ? "." : folder.string();
}

constexpr std::string_view temporary_prefix = ".unshuffle-";
constexpr unsigned temporary_digits = 6, temporary_count = 1'000'000;

/// Beside the target, named after the process. It stays locked until it is closed, so that others can tell it from one
/// that was left behind.
Descriptor open_temporary(const std::string& target, const std::string& path) {
  if (path.empty()) throw SystemFailure("the name of an output file is empty");
  static std::atomic<unsigned> made{0};
  for (;;) {
    std::string name = fmt::format("{}/{}{}-{:0{}}", folder_of(target), temporary_prefix, ::getpid(),
                                   made++ % temporary_count, temporary_digits);
    UnfinishedFile* noted = nullptr;
    const int descriptor = make_noted(name, noted);
    if (descriptor < 0 && errno == EEXIST) continue;  // of a process of the same number, on another machine perhaps
    if (descriptor < 0) fail(path, errno);
    ::flock(descriptor, LOCK_EX | LOCK_NB);
    return Descriptor(descriptor, std::move(name), noted);  // a copy may need memory that is not there
  }
}

/// The process a temporary file is named after; none: the file is not one of ours.
std::optional<pid_t> writer_of(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return std::nullopt;
  name.remove_prefix(temporary_prefix.size());
  pid_t writer = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), writer);
  const std::string_view rest(end, name.data() + name.size());
  if (failure != std::errc{} || writer <= 0 || rest.size() != 1 + temporary_digits || rest.front() != '-')
    return std::nullopt;
  return writer;
}

/// Whoever writes the file holds a lock on it. Process numbers alone would not do: they are used again, and mean
/// nothing to other machines and containers that share the folder.
bool is_abandoned(const std::string& path, pid_t writer) {
  if (::kill(writer, 0) == 0 || errno != ESRCH) return false;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool unlocked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return unlocked;
}

/// Removes what killed runs could not.
void remove_leftovers(const std::string& folder) {
  std::error_code failure;
  for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::optional<pid_t> writer = writer_of(entry->path().filename().string());
    if (writer && is_abandoned(entry->path().string(), *writer)) ::unlink(entry->path().c_str());
  }
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view content) {
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) fail(path, EISDIR);
  if (exists && is_device(path, existing)) {
    // What is open already may be a regular file: it goes on where it is, and is not written over from its beginning.
    const int number = descriptor_named(path);
    const int opened = number >= 0 ? ::fcntl(number, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (opened < 0) fail(path, errno);
    Descriptor device(opened);
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
  ending = true;
  for (UnfinishedFile& file : unfinished_files) {
    for (int milliseconds = 0; milliseconds < 1000 && file.state == UnfinishedFile::making; ++milliseconds)
      ::poll(nullptr, 0, 1);
    if (file.state == UnfinishedFile::there) ::unlink(file.path);
  }
}

void make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) throw SystemFailure(fmt::format("{}: cannot be created: {}", path, failure.message()));
  remove_leftovers(path);
}

bool same_file(const std::string& one, const std::string& other) {
  struct stat first {
  }, second{};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 && S_ISREG(first.st_mode) &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
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
  const std::string target = resolved(path);
  remove_leftovers(folder_of(target));
  open_temporary(target, path);
}

}  // namespace unshuffle
