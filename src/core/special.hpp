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

/// The logarithm of Γ(x), x > 0, and its first and second derivatives.
[[nodiscard]] double log_gamma(double x);
[[nodiscard]] double digamma(double x);
[[nodiscard]] double trigamma(double x);

/// P(a, x), the cumulative gamma distribution of shape a and scale 1, and its inverse.
[[nodiscard]] double gamma_cumulative(double x, double a);
[[nodiscard]] double gamma_quantile(double share, double a);

/// I_x(a, b), the cumulative beta distribution.
[[nodiscard]] double beta_cumulative(double x, double a, double b);

/// Student's distribution with ν degrees of freedom, and its inverse.
[[nodiscard]] double student_cumulative(double x, double nu);
[[nodiscard]] double student_quantile(double share, double nu);

/// The standard normal distribution.
[[nodiscard]] double normal_cumulative(double x);

}  // namespace unshuffle
