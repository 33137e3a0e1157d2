// The course of a fit, for --verbose.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "unshuffle/estimators/result.hpp"

namespace unshuffle::app {

/// Excludes --quiet, which must have been added before.
void add_verbose_option(CLI::App& command, bool& verbose,
                        const std::string& help = "Also print the outcome of every start and every traced iteration.");

/// The outcome of every start, best first, and the traced iterations.
[[nodiscard]] std::string course_of(const Course& course);

}  // namespace unshuffle::app
