// Command-line options about the links: hints, known pairs, prior odds, truths of simulations.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "unshuffle/tables/problem.hpp"

namespace unshuffle::app {

struct LinkOptions {
  std::string hint = "auto";
  std::string known;
  std::string prior;
  std::string truth;
};

void add_link_options(CLI::App& app, LinkOptions& options);

/// The value of --hint; one table counts as in order unless it says otherwise.
[[nodiscard]] RowOrder order_of(const LinkOptions& options, bool one_table);

/// Pairs of --known; none when not given.
[[nodiscard]] std::vector<KnownPair> known_pairs(const LinkOptions& options);

/// Weights of --prior; none when not given.
[[nodiscard]] std::vector<PairWeight> pair_weights(const LinkOptions& options);

/// The files that the options name.
[[nodiscard]] std::vector<std::string> inputs_of(const LinkOptions& options);

/// All pairs of a truth.json, from its permutation.
[[nodiscard]] std::vector<KnownPair> true_pairs(const std::string& path);

}  // namespace unshuffle::app
