// How a fit searches: hints, starts, known pairs and the settings of single methods. Shared by fit and compare.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle::app {

struct SearchOptions {
  std::string hint = "auto";
  std::string start = "auto";
  int starts = 0;
  int max_iterations = 0;
  std::uint64_t seed = 0;
  std::string known;
  std::string prior;
  std::string truth;
  bool paper_settings = false;
  std::string am_step = "exact";
  int em_chains = 4;
  double em_swaps = 20;
  double rr_threshold = 1.345;
  long rs_samples = 200000;
  double rs_threshold = 1e-2;
  int gw_slices = 200;
  double gw_epsilon = 5e-3;
  int unroll = 200;
  double noise_sd = 0;
  int bootstrap = 0;

  /// An option and the methods that read it.
  struct Special {
    CLI::Option* option;
    std::vector<Method> methods;
  };
  std::vector<Special> special;
};

void add_search_options(CLI::App& app, SearchOptions& options);

/// Refuses options that `method` does not read.
void require_read_by(Method method, const SearchOptions& options);

/// Writes them into `fit`. Throws InvalidInput naming the option, its value and what was expected.
void apply(const SearchOptions& options, bool one_table, FitOptions& fit);

/// Reads what only the bound model can make sense of: the start, and the paper's settings.
void apply_to_model(const SearchOptions& options, const Problem& problem, const Model& bound, FitOptions& fit);

/// Pairs of --known; none when not given.
[[nodiscard]] std::vector<KnownPair> known_pairs(const SearchOptions& options);

/// Weights of --prior; none when not given.
[[nodiscard]] std::vector<PairWeight> pair_weights(const SearchOptions& options);

/// All pairs of a truth.json, from its permutation.
[[nodiscard]] std::vector<KnownPair> true_pairs(const std::string& path);

}  // namespace unshuffle::app
