// Standard errors from samples drawn from the fitted model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/checkpoint.hpp"
#include "core/random.hpp"
#include "links/linked.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle {

/// y = f(x_i, z_j; w) + R N(0, I), R the root of the noise's covariance, for every link (i, j); responses without a
/// link keep what they have.
[[nodiscard]] Problem drawn_from(const Problem& problem, const Model& bound, const Vector& w, const Matrix& noise_root,
                                 const Links& links, RandomStream& random);

/// Every response with a partner of its block drawn at random, no feature twice before all have been taken; responses
/// beyond that belong to features that were not seen, for which those that were stand in, of any weights.
[[nodiscard]] Links random_links(const Problem& problem, RandomStream& random);

/// The covariance of refit(k) over k < samples, on all threads; empty when progress says stop.
[[nodiscard]] Matrix spread_of_refits(const Run& run, int samples, const std::function<Vector(int)>& refit);

/// The note on the result of spread_of_refits(), or on its absence.
[[nodiscard]] std::string bootstrap_note(int samples, const Matrix& covariance,
                                         std::string_view of_what = "the fitted model");

/// The random numbers of sample k.
[[nodiscard]] RandomStream bootstrap_stream(std::uint64_t seed, int k);

}  // namespace unshuffle
