// Samples with a known truth, following the paper's designs, for experiments and tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class Design {
  sensing,    ///< Unlabelled sensing: y = z·w + noise; part of the rows of z are shuffled.
  linear,     ///< y = x·w_x + z·w_z + noise.
  nonlinear,  ///< y = Σ_k sin([x z]_k w_k) + noise.
  gamma,      ///< y = z·w + noise, all rows shuffled; the features follow gamma laws of scale one.
};

struct SimulateOptions {
  Design design = Design::sensing;
  Index rows = 1000;
  Index dim_x = -1;     ///< Features on the response side; -1: 0 for sensing, else 2.
  Index dim_z = -1;     ///< Features whose links are lost; -1: 5 for sensing, else 3.
  double shuffle = -1;  ///< Share of the rows of z permuted among themselves, in [0, 1]; -1: 0.5 for sensing, else 1.
  double noise = 0.1;   ///< Variance of the noise.
  double snr = -1;      ///< Signal variance over noise variance; sets `noise` when ≥ 0. Not for nonlinear.
  double mean = 0;      ///< Of every feature, whose variance is one; gamma: added to every feature.
  double shape = 0;     ///< gamma: of every feature's law; 0: 0.5, 1, 2, 4, ... one after the other.
  std::uint64_t seed = 0;
};

/// The options with unset values filled in from the design. Throws InvalidInput for an impossible sample.
[[nodiscard]] SimulateOptions completed(SimulateOptions options);

/// A sample whose tables have lost their links, with the true links alongside.
struct ShuffledSample {
  Problem problem;                 ///< The training sample; its true links are in `permutation`.
  Problem test;                    ///< All linked, from the same truth.
  Vector coefficients;             ///< w, of x then z.
  std::vector<Index> permutation;  ///< Row of z that belongs to each response.
};

struct Simulation : ShuffledSample {
  SimulateOptions options;  ///< With all values filled in.
};

/// Same seed, same numbers, on any machine with IEEE doubles.
[[nodiscard]] Simulation simulate(const SimulateOptions& options);

/// responses-0001.csv, features-0001.csv and so on, `shards` of each, with `options.rows` rows in all; test.csv and
/// truth.json beside them. One truth for all; rows are shuffled within a shard, and never more than a few shards are in
/// memory.
void write_shards(const SimulateOptions& options, Index shards, const std::string& directory);

/// Tables as people have them: wages.csv with wage and city, people.csv with a tenth more rows, in another order, with
/// text, truth values and missing cells; test.csv with complete linked rows, and truth.json.
void write_wages(Index rows, std::uint64_t seed, const std::string& directory);

/// Relative test error Σ(ŷ-y)²/Σ(y-ȳ)² of ordinary least squares with intercept, trained on links as given
/// (`linked` false) or on the true ones.
[[nodiscard]] double least_squares_test_error(const ShuffledSample& sample, bool linked);

/// responses.csv, features.csv, test.csv and truth.json in `directory`, which is created if missing.
void write_simulation(const Simulation& simulation, const std::string& directory);

/// The same files for any sample; the problem's groups, if it has some, become the column `group_name` of both tables.
void write_sample(const ShuffledSample& sample, const std::string& group_name, const std::string& truth,
                  const std::string& directory);

}  // namespace unshuffle
