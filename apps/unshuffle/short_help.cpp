#include "short_help.hpp"

#include <fmt/format.h>

#include <memory>
#include <sstream>

namespace unshuffle::app {
namespace {

constexpr const char* first_group = "Options that most people need";

class ShortHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode != CLI::AppFormatMode::Normal) return Formatter::make_help(app, name, mode);
    const auto first = app->get_options(
        [](const CLI::Option* option) { return option->nonpositional() && option->get_group() == first_group; });
    std::ostringstream out;
    out << make_description(app) << make_usage(app, std::move(name)) << make_positionals(app);
    out << make_group(first_group, false, first);
    out << fmt::format(
        "\n{} more options: unshuffle {} --help-all\n\n",
        app->get_options([](const CLI::Option* option) { return option->nonpositional(); }).size() - first.size(),
        app->get_name());
    out << make_footer(app);
    return out.str();
  }
};

}  // namespace

void add_short_help(CLI::App& app, const std::vector<std::string>& first, const std::vector<HelpGroup>& groups) {
  app.formatter(std::make_shared<ShortHelp>());
  app.set_help_all_flag("--help-all", "Print every option and exit.");
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; }))
    if (option->nonpositional()) option->group("Options of the methods");
  for (const auto& [name, options] : groups)
    for (const std::string& option : options) app.get_option(option)->group(name);
  for (const std::string& option : first) app.get_option(option)->group(first_group);
}

}  // namespace unshuffle::app
