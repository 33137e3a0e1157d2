// Rejects options with name, value and what was expected.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "unshuffle/core/error.hpp"
#include "unshuffle/tracking/tracker.hpp"

namespace unshuffle::tracking {

inline void require(bool holds, std::string_view option, double value, std::string_view expected) {
  if (!holds) throw InvalidInput(fmt::format("{} = {} must be {}", option, value, expected));
}

/// Requirements common to training the motion model and the Siamese model.
template <class Options, class Links>
void require_training(const Options& options, const Links& links) {
  require(options.epochs >= 1, "epochs", options.epochs, "at least 1");
  require(options.batch >= 1, "batch", options.batch, "at least 1");
  require(options.learning_rate > 0 && std::isfinite(options.learning_rate), "learning_rate", options.learning_rate,
          "> 0");
  require(links.epsilon > 0 && std::isfinite(links.epsilon), "epsilon", links.epsilon, "> 0");
  require(links.unmatched >= 0 && links.unmatched < 1, "unmatched", links.unmatched, "at least 0 and below 1");
  validate(options.tracker);
}

}  // namespace unshuffle::tracking
