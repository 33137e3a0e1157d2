// Passes over the rows of all processes. The leader calls them; the others run serve() until it finishes.
#pragma once

#include "core/message.hpp"
#include "large/passes.hpp"
#include "unshuffle/core/team.hpp"

namespace unshuffle::large {

class SharedPasses {
 public:
  SharedPasses(const Passes& own, Team& team) : own_(own), team_(team) {}

  /// Answers the leader until it calls finish().
  void serve();
  void finish();

  [[nodiscard]] Atoms compress(Side side, const Vector& w, const transport::CompressionRule& rule);
  /// `range` and `rule` say which CellGrid the functions are on.
  struct Grid {
    transport::Range range{0, 0};
    transport::CompressionRule rule;
  };
  [[nodiscard]] Derivatives differentiate(Side side, const Vector& w, const Grid& grid, const Functions& functions);
  [[nodiscard]] double matched(Side side, const Vector& w, const Grid& grid, const Matrix& log_ratio);
  [[nodiscard]] Vector partner_sums(Side side, const Vector& w, const Grid& grid, const Matrix& potential,
                                    const Targets& targets);
  [[nodiscard]] MixtureSums mixture_sums(const Vector& w, const MixtureState& state);

  [[nodiscard]] int passes() const { return passes_; }

 private:
  enum class Request { finish, compress, differentiate, matched, partner_sums, mixture_sums };

  [[nodiscard]] static Message request(Request what, Side side, const Vector& w);
  /// Broadcasts the request to all processes and computes this process's part.
  [[nodiscard]] std::vector<double> ask(Message& question);
  [[nodiscard]] std::vector<double> answer(Message question) const;
  void add_up_or_line_up(Request what, std::vector<double>& answers);

  const Passes& own_;
  Team& team_;
  int passes_ = 0;
};

}  // namespace unshuffle::large
