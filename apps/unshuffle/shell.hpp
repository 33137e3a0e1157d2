// The command line described to others: man, bash and zsh. All of it is read off the options as CLI11 knows them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace unshuffle::app {

[[nodiscard]] std::string man_page(const CLI::App& root);
[[nodiscard]] std::string bash_completion(const CLI::App& root);
[[nodiscard]] std::string zsh_completion(const CLI::App& root);

}  // namespace unshuffle::app
