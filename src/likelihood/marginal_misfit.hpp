// Whether responses are distributed as a fitted law says, whatever their links.
#pragma once

#include "unshuffle/core/types.hpp"
#include "unshuffle/families/family.hpp"

namespace unshuffle {

/// The largest difference between the distribution function of the responses and that of the law at the predictors η of
/// all features, in units of what chance exceeds once in ten thousand times (Kolmogorov): beyond 1 the responses are
/// not of this law with these predictors. Counts and fitted coefficients make chance differences smaller.
[[nodiscard]] double marginal_misfit(const Family& family, const Shape& shape, const VectorRef& y,
                                     const VectorRef& eta);

}  // namespace unshuffle
