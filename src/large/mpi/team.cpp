// The team of an MPI job. All communication uses collectives; there are no point-to-point messages.
#include <fmt/format.h>
#include <mpi.h>

#include <cstdint>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {
namespace {

/// MPI counts are of type int, so longer lists are sent in parts.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

class MpiTeam final : public Team {
 public:
  MpiTeam() {
    int ready = 0;
    MPI_Initialized(&ready);
    if (ready == 0) MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiTeam() override { MPI_Finalize(); }
  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void broadcast(std::vector<double>& values) override {
    std::uint64_t size = values.size();
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    values.resize(size);
    in_parts(size,
             [&](std::size_t at, int part) { MPI_Bcast(values.data() + at, part, MPI_DOUBLE, 0, MPI_COMM_WORLD); });
    count(leads() ? size * static_cast<std::size_t>(size_ - 1) : size);
  }

  [[nodiscard]] std::vector<double> gather(std::vector<double> own) override {
    const std::uint64_t size = own.size();
    std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size_));
    MPI_Gather(&size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    std::vector<int> counts, places;
    std::uint64_t total = 0;
    for (const std::uint64_t each : sizes) {
      places.push_back(static_cast<int>(total));
      counts.push_back(static_cast<int>(each));
      total += each;
    }
    // All processes must agree before any of them sends.
    MPI_Bcast(&total, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (total >= most_at_once)
      throw SystemFailure(fmt::format("{} numbers are too many to bring to one process", total));
    std::vector<double> all(leads() ? total : 0);
    MPI_Gatherv(own.data(), static_cast<int>(size), MPI_DOUBLE, all.data(), counts.data(), places.data(), MPI_DOUBLE, 0,
                MPI_COMM_WORLD);
    count(leads() ? total - size : size);
    return all;
  }

  void sum(std::vector<double>& values) override { reduce(values, MPI_SUM); }
  void largest(std::vector<double>& values) override { reduce(values, MPI_MAX); }

  void abort(int exit_code) override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  void reduce(std::vector<double>& values, MPI_Op operation) {
    in_parts(values.size(), [&](std::size_t at, int part) {
      double* here = values.data() + at;
      MPI_Reduce(leads() ? MPI_IN_PLACE : here, here, part, MPI_DOUBLE, operation, 0, MPI_COMM_WORLD);
    });
    count(leads() ? values.size() * static_cast<std::size_t>(size_ - 1) : values.size());
  }

  template <class Action>
  static void in_parts(std::size_t size, const Action& action) {
    for (std::size_t at = 0; at < size; at += most_at_once)
      action(at, static_cast<int>(std::min(most_at_once, size - at)));
  }

  int rank_ = 0;
  int size_ = 1;
};

}  // namespace
}  // namespace unshuffle

extern "C" UNSHUFFLE_EXPORT const char* unshuffle_component_version() { return unshuffle::version; }

extern "C" UNSHUFFLE_EXPORT unshuffle::Team* unshuffle_make_team() { return new unshuffle::MpiTeam(); }
