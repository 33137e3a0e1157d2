// Rows in partly correct order with any response law, and what is known of their links: the general form of
// mixture.hpp.
#pragma once

#include <cstdint>

#include "likelihood/family_fit.hpp"

namespace unshuffle {

/// What is assumed of the log odds λ that link i is right: λ_i = offset_i + design(i, :)·δ.
struct LinkOdds {
  Matrix design{};                   ///< Columns of δ; none: λ is given.
  Vector offset{};                   ///< One per row.
  Vector start{};                    ///< Where δ begins.
  std::vector<std::string> names{};  ///< Of δ.
  double rate = 0;                   ///< The mean of 1 - s(λ) over links that are not known,
  double rate_precision = 0;         ///< and its inverse variance; 0: nothing is known of it.
};

/// From what is known of the rows: nothing (one unknown rate), columns, rates with or without an audit. The first
/// `known` links are.
[[nodiscard]] LinkOdds link_odds(const RowFacts& facts, const Links& links, Index known = 0);

/// ½ precision·(mean α - rate)² over the links that are not known, in δ.
[[nodiscard]] Sample distance_from_rate(const LinkOdds& odds, Index known, const Vector& delta);

struct FamilyMixtureFit {
  Vector parameters;
  Shape shape = Shape::Zero();
  Vector odds;              ///< δ.
  Matrix model_covariance;  ///< Of all of (w, τ, δ), inverse observed information.
  Matrix covariance;        ///< Of the parameters: sandwich,
  Vector shape_errors;      ///< standard errors of τ,
  Vector odds_errors;       ///< and of δ.
  Vector link_probability;  ///< Of every row, 1 where it is known.
  double log_likelihood = 0;
  double gain = 0;  ///< Nats over the same rows with no link right.
  bool converged = false;
  int iterations = 0;
};

/// The logarithm of the law of y where the link is wrong: the shares of values for whole numbers (of single trials
/// pooled where their numbers differ), else a density.
[[nodiscard]] Vector log_law_of_wrong_links(const Family& family, const FamilyRows& rows, std::uint64_t seed);

/// From regression on all rows and on the half that fits it best, with few and with many wrong links; the most likely.
[[nodiscard]] FamilyMixtureFit fit_family_mixture(const Family& family, const FamilyRows& rows, const LinkOdds& odds,
                                                  std::uint64_t seed);

/// That each link is right where the coefficients are w: the odds, and the shape from `shape` on, are those that suit
/// them best.
[[nodiscard]] Vector link_probabilities_at(const Family& family, const FamilyRows& rows, const LinkOdds& odds,
                                           const Vector& log_other, const Vector& w, const Shape& shape);

}  // namespace unshuffle
