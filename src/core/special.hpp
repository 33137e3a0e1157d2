// Special functions from Boost.Math, whose headers only special.cpp includes.
#pragma once

namespace unshuffle {

/// P(χ²_k > x), to full precision however far out x lies.
[[nodiscard]] double chi_squared_tail(double x, double k);

/// The quantile of χ²_k at probability `share`.
[[nodiscard]] double chi_squared_quantile(double share, double k);

/// The quantile of the standard normal distribution at probability `share`.
[[nodiscard]] double normal_score(double share);

/// Riemann's ζ.
[[nodiscard]] double zeta(double s);

}  // namespace unshuffle
