#include "suggest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace unshuffle::app {
namespace {

/// Letters to insert, remove, replace or swap with the next one (restricted Damerau-Levenshtein distance).
std::size_t letters_apart(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string question(const std::optional<std::string>& meant) {
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t fewest = 1 + std::max<std::size_t>(1, word.size() / 4);
  for (const std::string& candidate : candidates) {
    const std::size_t apart = letters_apart(word, candidate);
    if (apart >= fewest) continue;
    fewest = apart;
    best = candidate;
  }
  return best;
}

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
    return fmt::format("unknown command {}{} (see unshuffle --help)", *first, question(nearest(*first, commands)));
  const std::vector<std::string> options = long_options(*command);
  for (auto word = std::next(first); word != arguments.end() && *word != "--"; ++word) {
    const std::string name = word->substr(0, word->find('='));
    if (!name.starts_with("--") || std::find(options.begin(), options.end(), name) != options.end()) continue;
    return fmt::format("unknown option {}{} (see unshuffle {} --help)", name, question(nearest(name, options)), *first);
  }
  return std::nullopt;
}

}  // namespace unshuffle::app
