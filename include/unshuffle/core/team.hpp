// Processes that work on one problem. What they say to each other goes through here and nowhere else.
#pragma once

#include <memory>
#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// `count` rows from `first` on.
struct RowShare {
  Index first = 0;
  Index count = 0;
};

class Team {
 public:
  virtual ~Team() = default;

  [[nodiscard]] virtual int rank() const { return 0; }  ///< 0: this process leads.
  [[nodiscard]] virtual int size() const { return 1; }
  [[nodiscard]] bool leads() const { return rank() == 0; }
  /// Of that many rows, those of this process.
  [[nodiscard]] RowShare share_of(Index rows) const {
    const Index first = rows * rank() / size();
    return {first, rows * (rank() + 1) / size() - first};
  }

  /// Everyone gets the leader's values.
  virtual void broadcast(std::vector<double>&) {}
  /// The leader gets everyone's values, one behind the other by rank; the others get nothing.
  [[nodiscard]] virtual std::vector<double> gather(std::vector<double> own) { return own; }
  /// The leader gets the sums of everyone's values, which are equally many.
  virtual void sum(std::vector<double>&) {}
  /// Likewise the largest of everyone's values.
  virtual void largest(std::vector<double>&) {}

  // The same for everyone, and to the same bits: processes that go on alike from here must not drift apart.
  [[nodiscard]] std::vector<double> gather_for_all(std::vector<double> own) {
    std::vector<double> all = gather(std::move(own));
    broadcast(all);
    return all;
  }
  void sum_for_all(std::vector<double>& values) {
    sum(values);
    broadcast(values);
  }
  void largest_for_all(std::vector<double>& values) {
    largest(values);
    broadcast(values);
  }

  /// Ends every process at once: what one of them cannot do, the others would wait for.
  virtual void abort(int) {}

  /// Sent and received by this process so far.
  [[nodiscard]] double bytes_moved() const { return bytes_; }

 protected:
  void count(std::size_t values) { bytes_ += 8 * static_cast<double>(values); }

 private:
  double bytes_ = 0;
};

/// Whether there is anyone to share work with.
[[nodiscard]] inline bool several(const Team* team) { return team != nullptr && team->size() > 1; }

/// How many processes mpirun or srun started together with this one, itself included.
[[nodiscard]] int processes_started();

/// The processes that mpirun started; one alone when it did not. Throws InvalidInput when there are several and this
/// program was built without MPI.
[[nodiscard]] std::unique_ptr<Team> make_team();

}  // namespace unshuffle
