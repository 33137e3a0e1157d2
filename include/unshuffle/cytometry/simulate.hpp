// The paper's cytometry experiments: FC, with all links lost, and GFC, with cells sorted by gates first and links lost
// within each gate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/tables/simulate.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {
namespace cytometry UNSHUFFLE_EXPORT {

struct ShuffleOptions {
  Index rows = -1;           ///< Events drawn; -1: 1400 as in the paper, or all where there are fewer.
  Index features = -1;       ///< Drawn, or the most significant kept of a table; -1: 20 as in the paper, or all.
  Index gates = 0;           ///< Equal-mass gates of the response; 0: none (FC).
  double gate_error = 0.01;  ///< Share of the training events that land in a wrong gate.
  double test_share = 0.1;   ///< Of the events kept for testing, linked.
  double noise = 0.1;        ///< Share of the response's variance that is noise; for drawn events only.
  std::uint64_t seed = 0;
};

struct ShuffledEvents : ShuffledSample {
  ShuffleOptions options;  ///< With everything filled in.
  bool drawn = false;      ///< Coefficients are those the events were drawn with; else of linked least squares.
  double intercept = 0;
  Vector y_unit;  ///< Mean and standard deviation by which the response was standardised, of the training events.
  Matrix z_unit;  ///< Likewise, one column per feature.
  std::vector<std::string> notes;
};

/// Events of a few cell populations in correlated channels, on a scale like asinh; the response is linear in them.
[[nodiscard]] ShuffledEvents draw_events(const ShuffleOptions& options);

/// Events of a table: `response` is shuffled against the other columns, or against `features` where some are named.
[[nodiscard]] ShuffledEvents shuffle_events(const Table& events, const std::string& response,
                                            const std::vector<std::string>& features, const ShuffleOptions& options);

/// responses.csv, features.csv, test.csv and truth.json; with `as_fcs` also responses.fcs and features.fcs.
void write_events(const ShuffledEvents& events, const std::string& directory, bool as_fcs);

}  // namespace cytometry
}  // namespace unshuffle
