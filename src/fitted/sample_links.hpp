// Complete sets of links drawn from their posterior under a fit.
//
// Every set begins with coefficients drawn from their own distribution, so that analyses pooled over the sets count
// that uncertainty, too. Links that are all equally likely beforehand are then drawn block by block. Rows in order are
// kept with the probability that their link is right; the others are linked among themselves.
#pragma once

#include <optional>
#include <vector>

#include "likelihood/family_mixture.hpp"
#include "likelihood/link_draws.hpp"
#include "unshuffle/fitted/fitted.hpp"

namespace unshuffle {

/// The log weight of every pair at some coefficients.
class PairWeights {
 public:
  /// All must outlive it. `noise_sd` is that of Gaussian responses.
  PairWeights(const Problem& problem, const Model& bound, const FittedLaw& law, double noise_sd);

  void move_to(const Vector& w);
  [[nodiscard]] double operator()(Index response, Index feature) const;
  /// Pairs of like order fit best; only with `on_line()`.
  [[nodiscard]] double place(Side side, Index row) const;
  /// There is one response and the model is additive.
  [[nodiscard]] bool on_line() const { return on_line_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }

 private:
  const Problem& problem_;
  const Model& bound_;
  const Family& family_;
  Shape shape_;  ///< Of the family; of a Gaussian one the log variance.
  bool on_line_;
  Matrix x_, z_;          ///< Through basis().
  Matrix response_part_;  ///< Of the predictors; offsets included.
  Matrix feature_part_;
  Matrix costs_;  ///< Of all pairs, where the model is not additive.
};

class LinkSampler {
 public:
  /// Throws InvalidInput for methods without a likelihood. `bound`, `result` and `context` must outlive it.
  LinkSampler(Problem problem, const Model& bound, const Result& result, const FitContext& context, std::uint64_t seed);

  [[nodiscard]] std::vector<LinkSet> draw(Index samples);

 private:
  struct State;  ///< Of a block.
  struct Order;
  struct Kept {
    LinkSet links{};
    std::vector<char> responses{}, features{};
  };

  [[nodiscard]] Vector drawn_coefficients(RandomStream& random) const;
  [[nodiscard]] Kept kept_links(const Vector& w, RandomStream& random) const;
  [[nodiscard]] State begin(std::vector<Index> responses, std::vector<Index> features) const;
  [[nodiscard]] LinkSet draw_block(State& state, bool first, RandomStream& random) const;
  [[nodiscard]] LinkSet draw_rest(const Block& block, const Kept& kept, RandomStream& random) const;

  Problem problem_;
  const Model& bound_;
  const Result& result_;
  const FitContext& context_;
  std::uint64_t seed_;
  PairWeights weights_;
  std::shared_ptr<const Order> order_;  ///< Where links are in the order given; else empty.
};

}  // namespace unshuffle
