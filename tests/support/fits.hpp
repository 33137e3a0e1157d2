// Helpers for tests of whole fits.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// The same tables, of whose order this is said.
inline Problem ordered(Problem problem, RowOrder order) {
  problem.order = order;
  return problem;
}

/// The same tables, whose rows are probably linked in the order given.
inline Problem hinted(Problem problem) { return ordered(std::move(problem), RowOrder::probably_linked); }

/// A single start, there.
inline StartOptions starting_at(const Vector& parameters) { return {.start = {StartKind::user, parameters}}; }

/// The estimator with this option, if it is one of those that read it.
inline Estimator with_option_if_read(Estimator estimator, std::string_view name, const OptionValue& value) {
  const auto options = option_values(estimator);
  const bool reads =
      std::any_of(options.begin(), options.end(), [&](const auto& option) { return option.first == name; });
  if (reads) set_option(estimator, name, value);
  return estimator;
}

}  // namespace unshuffle
