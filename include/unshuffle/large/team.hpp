// Processes that share the rows of one problem. The first of them leads: it asks, all answer from the rows they hold.
#pragma once

#include <memory>
#include <vector>

namespace unshuffle::large {

class Team {
 public:
  virtual ~Team() = default;

  [[nodiscard]] virtual int rank() const { return 0; }  ///< 0: this process leads.
  [[nodiscard]] virtual int size() const { return 1; }
  [[nodiscard]] bool leads() const { return rank() == 0; }

  /// Everyone gets the leader's values.
  virtual void broadcast(std::vector<double>&) {}
  /// The leader gets everyone's values, one behind the other by rank; the others get nothing.
  [[nodiscard]] virtual std::vector<double> gather(std::vector<double> own) { return own; }
  /// The leader gets the sums of everyone's values, which are equally many.
  virtual void sum(std::vector<double>&) {}

  /// Ends every process at once: what one of them cannot do, the others would wait for.
  virtual void abort(int) {}

  /// Sent and received by this process so far.
  [[nodiscard]] double bytes_moved() const { return bytes_; }

 protected:
  void count(std::size_t values) { bytes_ += 8 * static_cast<double>(values); }

 private:
  double bytes_ = 0;
};

/// The processes that mpirun started; one alone when it did not. Throws InvalidInput when there are several and this
/// program was built without MPI.
[[nodiscard]] std::unique_ptr<Team> make_team();

}  // namespace unshuffle::large
