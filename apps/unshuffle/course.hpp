// What happened on the way to a fit, for --verbose.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "unshuffle/estimators/result.hpp"

namespace unshuffle::app {

/// Excludes --quiet, which must have been added before.
void add_verbose_option(
    CLI::App& command, bool& verbose,
    const std::string& help = "Also print where every start led, and every iteration that was traced.");

/// Where every start led, best first, and the iterations that were traced.
[[nodiscard]] std::string course_of(const Course& course);

}  // namespace unshuffle::app
