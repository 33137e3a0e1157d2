// Finished pieces of a long fit, kept in a file so that an interrupted fit can resume.
//
// A piece of work is identified by the numbers it starts from. Code that does one looks it up first and stores the
// result when done, without knowing what else the fit consists of. Processes exchange finished work the same way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "unshuffle/core/execution.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Identifies a piece of work: FNV-1a over everything added.
class WorkKey {
 public:
  explicit WorkKey(const char* kind);
  WorkKey& add(const MatrixRef& values);
  WorkKey& add(double value);
  WorkKey& add(const std::string& text);
  [[nodiscard]] std::string text() const;

 private:
  void add_bytes(const void* bytes, std::size_t size);
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

class Checkpoint {
 public:
  /// Reads the file if it exists; without a path nothing is read or written. Throws BadData when the file belongs to
  /// another fit or is not a checkpoint.
  Checkpoint(std::string path, const WorkKey& fit);

  /// The result passed to keep(), in this run or an earlier one. Thread-safe.
  [[nodiscard]] std::optional<std::string> find(const WorkKey& work) const;
  /// Stores the result and rewrites the file atomically.
  void keep(const WorkKey& work, std::string result);
  [[noreturn]] void complain_of_damage() const;

  /// Shares the finished work of each process with all others.
  void exchange(Team& team);

 private:
  void write() const;
  [[nodiscard]] std::string content() const;

  std::string path_;
  std::string fit_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> done_;
  std::vector<std::string> not_exchanged_;  // keys
};

/// A fit in progress: its settings and the work already done.
struct Run : Execution {
  std::shared_ptr<Checkpoint> finished{};  ///< None: nothing is kept.
};

/// Parses the finished work of that fit from the bytes of a file. Throws BadData as the constructor does.
[[nodiscard]] std::map<std::string, std::string> finished_work_in(const std::string& bytes, const std::string& path,
                                                                  const std::string& fit);

/// Doubles to text and back, bit for bit; throws BadData for other text.
[[nodiscard]] std::string to_hex(const VectorRef& values);
[[nodiscard]] Vector from_hex(const std::string& text);

/// The stored result, or else that of work(), which is then stored. `pack` and `unpack` convert results to text and
/// back, bit for bit.
template <class Work, class Pack, class Unpack>
auto finished_or(const Run& run, const WorkKey& key, const Work& work, const Pack& pack, const Unpack& unpack) {
  if (!run.finished) return work();
  if (const auto before = run.finished->find(key)) {
    try {
      return unpack(*before);
    } catch (const std::exception&) {
      run.finished->complain_of_damage();
    }
  }
  auto result = work();
  if (const std::optional<std::string> text = pack(result)) run.finished->keep(key, *text);
  return result;
}

}  // namespace unshuffle
