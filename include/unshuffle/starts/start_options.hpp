// User options of where searches begin.
#pragma once

#include <array>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class StartKind {
  automatic,      ///< Depends on the problem (docs/optimisers.md): ransac with the row hint, else all the others.
  least_squares,  ///< Ordinary regression as if rows were linked in the order given (n = m only).
  ransac,         ///< Consensus over small samples of rows linked in the order given.
  group_means,    ///< Regression on the groups' means, which are linked although their rows are not.
  random,         ///< Gaussian coefficients of the scale that explains the spread of y.
  user,           ///< StartChoice::parameters.
};
inline constexpr std::array start_words{
    Word<StartKind>{"auto", StartKind::automatic}, Word<StartKind>{"ls", StartKind::least_squares},
    Word<StartKind>{"ransac", StartKind::ransac}, Word<StartKind>{"group-means", StartKind::group_means},
    Word<StartKind>{"random", StartKind::random}};
constexpr std::span<const Word<StartKind>> words_of(StartKind) { return start_words; }

/// A kind of start by its word, or the parameters themselves.
struct StartChoice {
  StartKind kind = StartKind::automatic;
  Vector parameters{};  ///< For StartKind::user.

  void assign(const OptionText& text, const OptionValue& given);
  [[nodiscard]] OptionValue value() const;
  [[nodiscard]] static std::vector<std::string> words() { return detail::words_of_type<StartKind>(); }
};

/// Smoothing of the alignment by which starts link rows, and the default of sinkhorn-gw: relative to the largest
/// linearised cost of the first plan. Sharper plans rarely converge in the time that other starts take.
inline constexpr double alignment_epsilon = 5e-3;

struct StartOptions {
  StartChoice start{};
  int starts = 0;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"start", "Where the search begins: one of the words, or the coefficients themselves."},
          self.start);
    visit(OptionText{"starts", "How many starts; 0 chooses.", not_negative}, self.starts);
  }
};

}  // namespace unshuffle
