// Every option of every estimator as a Markdown page, docs/options.md.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/estimators/estimators.hpp"

namespace unshuffle::app {

[[nodiscard]] std::string options_page(const std::vector<EstimatorEntry>& entries);

/// The rules by which `auto` chooses, as in docs/methods/auto.md.
[[nodiscard]] std::string auto_table();

}  // namespace unshuffle::app
