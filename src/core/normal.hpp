// The standard normal distribution.
#pragma once

namespace unshuffle {

/// A standard normal variable lies within this distance of zero with probability 95 %.
inline constexpr double normal_quantile = 1.959963984540054;

/// That of any share of it.
[[nodiscard]] double normal_reach(double share);

}  // namespace unshuffle
