// The standard normal distribution.
#pragma once

namespace unshuffle {

/// 95 % of a standard normal variable are less than this from zero.
inline constexpr double normal_quantile = 1.959963984540054;

/// That of any share of it.
[[nodiscard]] double normal_reach(double share);

}  // namespace unshuffle
