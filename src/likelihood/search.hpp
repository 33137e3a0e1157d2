// The most likely coefficients when the links are unknown, and their competitors.
//
// The likelihood has many optima, most of them meaningless. Cheap starts (moments, sorted alternation on a sample) are
// refined on a sample of rows until the best optimum has recurred several times; the distinct ones that are not far
// behind are refined on all rows and compared in nats.
#pragma once

#include <string>
#include <vector>

#include "core/checkpoint.hpp"
#include "likelihood/likelihood.hpp"
#include "unshuffle/objective/settings.hpp"
#include "unshuffle/starts/start_options.hpp"

namespace unshuffle {

struct SearchOptions {
  Precision precision{};
  StartOptions starts{};
  double noise_sd = 0;                                        ///< Where it is known.
  NoiseCovariance noise_covariance = NoiseCovariance::equal;  ///< As in LikelihoodOptions.
};

struct FoundOptimum {
  Optimum optimum;
  std::string start;  ///< The kind of start that led to it first.
  int hits = 1;       ///< How many starts led to it, counting those that ended near it.
};

struct SearchResult {
  std::vector<FoundOptimum> optima;  ///< Distinct, the most likely first; at least one.
  int starts = 0;
  int evaluations = 0;
  bool one_start = false;  ///< Only one start was allowed, so other optima were not sought.
  bool stopped = false;    ///< On request of progress.
};

/// `problem` is completed() and `bound` bound to it. Throws BadData where no start leads to a finite
/// likelihood.
[[nodiscard]] SearchResult search_optima(const Problem& problem, const Model& bound, const SearchOptions& options,
                                         const Run& run);

/// Refines `starts` on all rows and adds what is new to `result`, keeping its order.
void refine_into(SearchResult& result, const Problem& problem, const Model& bound, const SearchOptions& options,
                 const Run& run, const std::vector<FoundOptimum>& starts);

/// Optima closer than this predict the same, in standard deviations of y.
inline constexpr double same_predictions = 0.02;

}  // namespace unshuffle
