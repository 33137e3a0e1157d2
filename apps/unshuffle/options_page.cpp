#include "options_page.hpp"

#include <fmt/format.h>

#include "unshuffle/core/wording.hpp"

namespace unshuffle::app {
namespace {

/// An option and the estimators that read it.
struct Listed {
  OptionInfo info;
  std::vector<std::string_view> readers;
};

std::vector<Listed> listed(const std::vector<EstimatorEntry>& entries) {
  std::vector<Listed> all;
  for (const EstimatorEntry& entry : entries) {
    for (const OptionInfo& info : entry.options) {
      auto found = std::find_if(all.begin(), all.end(), [&](const Listed& one) { return one.info.name == info.name; });
      if (found == all.end()) found = all.insert(all.end(), {info, {}});
      found->readers.push_back(entry.traits.name);
    }
  }
  return all;
}

std::string value_column(const OptionInfo& info) {
  if (!info.words.empty()) return fmt::format("{}", fmt::join(info.words, ", "));
  return info.constraint.empty() ? info.kind : fmt::format("{} {}", info.kind, info.constraint);
}

std::string row_of(const Listed& option) {
  const OptionInfo& info = option.info;
  return fmt::format("| `{}` | `{}` | {} | {} | {} | {} |\n", flag_of(info.name),
                     in_terms_of(Dialect::python, unshuffle::option(info.name)), value_column(info),
                     text_of(info.standard), info.help, fmt::join(option.readers, ", "));
}

}  // namespace

std::string options_page(const std::vector<EstimatorEntry>& entries) {
  std::string page =
      "# Options of the methods\n\n"
      "Written by `unshuffle info --describe options` from the declarations in\n"
      "`include/unshuffle/estimators/estimators.hpp`; the flag is for the command line, the parameter for Python. An\n"
      "option that a method does not read is rejected, not ignored. `auto` resets any option to its default.\n\n"
      "| flag | parameter | value | default | what it does | read by |\n|---|---|---|---|---|---|\n";
  for (const Listed& option : listed(entries)) page += row_of(option);
  page += "\n## Methods\n\n| method | what it does |\n|---|---|\n";
  for (const EstimatorEntry& entry : entries)
    page += fmt::format("| `{}` | {} |\n", entry.traits.name, entry.traits.help);
  return page;
}

std::string auto_table() {
  std::string table = "| when | method | what it does |\n|---|---|---|\n";
  for (const AutoRule& rule : auto_rules())
    table += fmt::format("| {} | {} | {} |\n", rule.when, rule.estimators, rule.what);
  return table;
}

}  // namespace unshuffle::app
