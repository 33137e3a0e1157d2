// Finished pieces of a long fit, kept in a file so that the same fit goes on from there after it was cut off.
//
// A piece of work is known by the numbers it started from. Whoever does one asks for it first and says when it is done;
// nobody needs to know what else the fit consists of. In the same way processes hand each other what they have done.
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

/// What a piece of work is known by: FNV-1a over everything added.
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
  /// Reads the file when there is one; without a path nothing is read or written. Throws BadData when it is of another
  /// fit, or none of ours.
  Checkpoint(std::string path, const WorkKey& fit);

  /// What keep() was given, in this run or an earlier one; from any thread.
  [[nodiscard]] std::optional<std::string> find(const WorkKey& work) const;
  /// Writes the file anew, whole or not at all.
  void keep(const WorkKey& work, std::string result);
  [[noreturn]] void complain_of_damage() const;

  /// Everyone's finished work goes to everyone.
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

/// A fit being carried out: what was asked for, and what is done already.
struct Run : Execution {
  std::shared_ptr<Checkpoint> finished{};  ///< None: nothing is kept.
};

/// The finished work of that fit in the bytes of a file. Throws BadData as the constructor does.
[[nodiscard]] std::map<std::string, std::string> finished_work_in(const std::string& bytes, const std::string& path,
                                                                  const std::string& fit);

/// Doubles as text and back to the same bits, whatever they are; throws BadData for other text.
[[nodiscard]] std::string to_hex(const VectorRef& values);
[[nodiscard]] Vector from_hex(const std::string& text);

/// work() unless its result was kept before. `pack` and `unpack` turn results into text and back to the same bits.
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
