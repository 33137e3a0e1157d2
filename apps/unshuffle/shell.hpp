// Descriptions of the command line for man, bash and zsh, generated from the options registered with CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace unshuffle::app {

[[nodiscard]] std::string man_page(const CLI::App& root);
[[nodiscard]] std::string bash_completion(const CLI::App& root);
[[nodiscard]] std::string zsh_completion(const CLI::App& root);

}  // namespace unshuffle::app
