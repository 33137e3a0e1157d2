// A team of threads in place of processes.
#pragma once

#include <omp.h>

#include <algorithm>
#include <barrier>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "unshuffle/core/team.hpp"

namespace unshuffle {

/// Where the threads meet.
struct Meeting {
  explicit Meeting(int size) : everyone(size), said(static_cast<std::size_t>(size)) {}
  std::barrier<> everyone;
  std::vector<std::vector<double>> said;
};

class ThreadTeam final : public Team {
 public:
  ThreadTeam(int rank, Meeting& meeting) : rank_(rank), meeting_(meeting) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(meeting_.said.size()); }

  void broadcast(std::vector<double>& values) override {
    if (leads()) meeting_.said[0] = values;
    meeting_.everyone.arrive_and_wait();
    values = meeting_.said[0];
    meeting_.everyone.arrive_and_wait();
  }
  [[nodiscard]] std::vector<double> gather(std::vector<double> own) override {
    const auto all = exchanged(std::move(own));
    std::vector<double> joined;
    if (leads())
      for (const auto& each : all) joined.insert(joined.end(), each.begin(), each.end());
    return joined;
  }
  void sum(std::vector<double>& values) override {
    const auto all = exchanged(values);
    if (!leads()) return;
    values.assign(values.size(), 0);
    for (const auto& each : all)
      for (std::size_t k = 0; k < values.size(); ++k) values[k] += each.at(k);
  }
  void largest(std::vector<double>& values) override {
    const auto all = exchanged(values);
    if (!leads()) return;
    for (const auto& each : all)
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = std::max(values[k], each.at(k));
  }

 private:
  std::vector<std::vector<double>> exchanged(std::vector<double> own) {
    count(own.size());
    meeting_.said[static_cast<std::size_t>(rank_)] = std::move(own);
    meeting_.everyone.arrive_and_wait();
    auto all = meeting_.said;
    meeting_.everyone.arrive_and_wait();
    return all;
  }

  int rank_;
  Meeting& meeting_;
};

/// work(team) on every thread of a team of that size; returns what the leader's returned.
template <class Work>
auto as_team(int size, const Work& work) {
  Meeting meeting(size);
  using Answer = decltype(work(std::declval<Team&>()));
  std::vector<Answer> results(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      omp_set_num_threads(1);
      ThreadTeam team(rank, meeting);
      results[static_cast<std::size_t>(rank)] = work(team);
    });
  for (std::thread& thread : threads) thread.join();
  return std::move(results.front());
}

}  // namespace unshuffle
