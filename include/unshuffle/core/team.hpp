// Processes that work on one problem. All their communication goes through this interface.
#pragma once

#include <memory>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

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
  /// This process's share of that many rows.
  [[nodiscard]] RowShare share_of(Index rows) const {
    const Index first = rows * rank() / size();
    return {first, rows * (rank() + 1) / size() - first};
  }

  /// All processes get the leader's values.
  virtual void broadcast(std::vector<double>&) {}
  /// The leader gets the values of all processes, concatenated by rank; the others get nothing.
  [[nodiscard]] virtual std::vector<double> gather(std::vector<double> own) { return own; }
  /// The leader gets the element-wise sums of the values of all processes.
  virtual void sum(std::vector<double>&) {}
  /// Likewise the element-wise maxima.
  virtual void largest(std::vector<double>&) {}

  // The same with the result on every process, bit for bit, so that processes that continue in lockstep stay in step.
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

  /// Ends every process at once; otherwise the others would wait for the one that failed.
  virtual void abort(int) {}

  /// Sent and received by this process so far.
  [[nodiscard]] double bytes_moved() const { return bytes_; }

 protected:
  void count(std::size_t values) { bytes_ += 8 * static_cast<double>(values); }

 private:
  double bytes_ = 0;
};

/// Whether there are other processes to share work with.
[[nodiscard]] inline bool several(const Team* team) { return team != nullptr && team->size() > 1; }

/// How many processes mpirun or srun started together with this one, itself included.
[[nodiscard]] int processes_started();

/// The processes started by mpirun; a team of one without it. Throws InvalidInput when there are several and this
/// program was built without MPI.
[[nodiscard]] std::unique_ptr<Team> make_team();

}  // namespace unshuffle
