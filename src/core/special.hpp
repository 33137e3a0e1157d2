// Special functions, by Boost.Math, whose headers only special.cpp reads.
#pragma once

namespace unshuffle {

/// P(χ²_k > x), to full precision however far out x lies.
[[nodiscard]] double chi_squared_tail(double x, double k);

/// What χ²_k is below with probability `share`.
[[nodiscard]] double chi_squared_quantile(double share, double k);

/// What a standard normal variable is below with probability `share`.
[[nodiscard]] double normal_score(double share);

/// Riemann's ζ.
[[nodiscard]] double zeta(double s);

}  // namespace unshuffle
