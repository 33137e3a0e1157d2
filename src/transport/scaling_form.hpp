// Bounds within which the scaling form of a plan is safe (docs/mathematics.md §2.8).
#pragma once

namespace unshuffle::transport::scaling {

/// Exponents below this count as this: entries of K neither vanish nor become denormal, which processors handle slowly.
inline constexpr double least_exponent = -600;
/// K serves column potentials up to this far from its reference, in units of ε; sums over a row at the reference must
/// be within these bounds. Entries at the least exponent then contribute less than 1e-160 to any sum. With a reach of
/// 200 fewer line searches compute K (R¹⁰ at ε = 1e-4 takes a fifth less time), but finite differences at ε = 1e-8 show
/// the rounding of such factors.
inline constexpr double reach = 50, least_sum = 1e-50, largest_sum = 1e50;
/// A column with a smaller share of its weight is summed in logarithms.
inline constexpr double nearly_empty = 1e-100;

}  // namespace unshuffle::transport::scaling
