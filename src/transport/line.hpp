// Measures on a line under the cost (t - s)², seen from a sorted set of target positions.
//
// For any potential v the entries of a target's row, φ_j + 2ts_j/ε with φ_j = v_j + log ν_j - s_j²/ε, have increasing
// differences in (t, s): as t grows, sources on the left only lose relative to those on the right. So the set of
// sources within a given distance of the row's largest entry moves monotonically, and two pointers find it for all
// targets. Between half steps φ is not exactly concave, but its concave hull is and bounds it from above, so windows
// cut on the hull are contiguous and miss nothing.
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// A weighted measure on a line, positions ascending.
struct LineMeasure {
  Vector position;
  Vector weight;  ///< Positive.

  [[nodiscard]] Index size() const { return position.size(); }
};

/// Significant sources [begin_i, end_i) for target i. Both ends never decrease.
struct Windows {
  std::vector<int> begin, end;
};

/// Entries more than this many nats below a row's largest one are dropped: e^-46 = 1e-20.
inline constexpr double window_depth = 46;

[[nodiscard]] Windows windows_of(const VectorRef& targets, const LineMeasure& sources, const VectorRef& potential,
                                 double epsilon, double depth = window_depth);

/// ℓ(t) = log Σ_j ν_j exp(v_j - (t - s_j)²/ε) for every target.
[[nodiscard]] Vector log_sums(const VectorRef& targets, const LineMeasure& sources, const VectorRef& potential,
                              double epsilon);

/// Dual potentials v (in units of ε) of the sources for the monotone matching, the solution at ε = 0: along the
/// staircase of matched pairs ξ_i + ζ_j = C_ij, so ζ_{j+1} - ζ_j is the cost difference seen from the target at which
/// the matching passes from s_j to s_{j+1}.
[[nodiscard]] Vector monotone_potentials(const LineMeasure& targets, const LineMeasure& sources, double epsilon);

}  // namespace unshuffle::transport
