#include "suggest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"

namespace unshuffle::app {
namespace {

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

std::optional<std::string> unknown_word(const CLI::App& root, const std::vector<std::string>& arguments) {
  const auto first =
      std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) { return !word.starts_with('-'); });
  if (first == arguments.end()) return std::nullopt;
  std::vector<std::string> commands;
  const CLI::App* command = nullptr;
  for (const CLI::App* one : root.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(one->get_name());
    if (one->get_name() == *first) command = one;
  }
  if (command == nullptr)
    return fmt::format("unknown command {}{} (see unshuffle --help)", *first, did_you_mean(*first, commands));
  const std::vector<std::string> options = long_options(*command);
  for (auto word = std::next(first); word != arguments.end() && *word != "--"; ++word) {
    const std::string name = word->substr(0, word->find('='));
    if (!name.starts_with("--") || std::find(options.begin(), options.end(), name) != options.end()) continue;
    return fmt::format("unknown option {}{} (see unshuffle {} --help)", name, did_you_mean(name, options), *first);
  }
  return std::nullopt;
}

}  // namespace unshuffle::app
