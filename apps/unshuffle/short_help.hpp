// Help that fits on a screen: the options most people need, and all of them on request.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace unshuffle::app {

/// --help shows arguments and these options, --help-all everything. The others are sorted into groups by what they are
/// about; those in none of these are options of the methods.
struct HelpGroup {
  std::string name;
  std::vector<std::string> options;
};
void add_short_help(CLI::App& app, const std::vector<std::string>& first, const std::vector<HelpGroup>& groups);

}  // namespace unshuffle::app
