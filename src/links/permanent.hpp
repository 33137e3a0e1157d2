// Sums over all one-to-one links of a group: log-permanents, the link probabilities in them, and what an entropic plan
// leaves out of them.
#pragma once

#include <string>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Groups of at most this many rows on either side are summed exactly; 2^n terms.
inline constexpr Index most_summed_rows = 12;

/// A function of single pairs, added up over the links: a vector per pair, that of row i and column j in column
/// i + rows·j.
using PairScores = Matrix;

struct LinkSum {
  double log_mean = 0;  ///< log of the mean over all links of Π K_iπ(i).
  Matrix probability;   ///< Of every pair; rows sum to one.
  Matrix covariance{};  ///< Of Σ_i scores(i, π(i)) over the links; empty without scores.
};

/// Links of every row to a column of its own, all equally likely beforehand; K = exp(log_kernel), no more rows than
/// columns.
[[nodiscard]] LinkSum sum_over_links(const Matrix& log_kernel, const PairScores* scores = nullptr);

/// The same for responses that are 0 or 1 and features whose responses are 1 with these probabilities, both sides
/// equally long, any length: a Poisson-binomial probability.
struct CountSum {
  double log_mean = 0;
  Vector expected;  ///< The response of every feature given that their sum is `ones`.
};
[[nodiscard]] CountSum sum_over_counts(const VectorRef& probability, Index ones);

/// D = log(perm(B) Nᴺ/N!), where B = NΓ for a plan Γ of mass one between N = max(n, m) rows, those of the shorter side
/// that are missing filled in evenly: approximately, for groups too large to be summed. `slope` is dD/dΓ.
struct PlanRemainder {
  double value = 0;
  Matrix slope;
};
[[nodiscard]] PlanRemainder remainder_of_plan(const Matrix& plan);

/// How the links of a group are summed, the most accurate way that can be afforded first.
enum class LinkRule {
  exact,      ///< Over all links.
  counts,     ///< By the number of ones.
  corrected,  ///< The plan's entropic value and remainder_of_plan.
  continuum,  ///< The same with the remainder of rows that lie densely on a line.
  by_plan,    ///< The plan's entropic value alone.
};

/// What the choice depends on.
struct GroupFacts {
  Index responses, features;
  bool summable;   ///< Every link is equally likely but for its pairs.
  bool binary;     ///< Responses are 0 or 1, and nothing but the features tells them apart.
  bool on_a_line;  ///< One response with normal noise.
  bool plan_held;  ///< The plan of all pairs is in memory.
};
[[nodiscard]] LinkRule rule_for(const GroupFacts& group);

/// How many groups were summed in which way.
struct LinkSums {
  Index exact = 0, counts = 0, corrected = 0, continuum = 0, by_plan = 0;

  void add(LinkRule rule);
  [[nodiscard]] bool any() const { return exact + counts + corrected + continuum + by_plan > 0; }
  /// Whether the sum has no approximation.
  [[nodiscard]] bool all_exact() const { return any() && corrected + continuum + by_plan == 0; }
  [[nodiscard]] std::string in_words() const;
};

}  // namespace unshuffle
