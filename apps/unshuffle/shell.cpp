#include "shell.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "unshuffle/version.hpp"

namespace unshuffle::app {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

/// Options by name, without positional arguments.
std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

/// The words an option is restricted to; CLI11 shows them as {a,b,c}. Empty: anything.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find('{'), end = type.find('}');
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::istringstream words(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
  return choices;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// Whether its value names columns of the tables on the line.
bool takes_columns(const CLI::Option& option) { return option.get_type_name().find("COL") != std::string::npos; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string with_replacements(std::string_view text, const std::vector<std::pair<char, std::string>>& replacements) {
  std::string out;
  for (const char c : text) {
    std::string written(1, c);
    for (const auto& [from, to] : replacements) {
      if (c == from) written = to;
    }
    out += written;
  }
  return out;
}

/// troff: a line may not begin with a dot or an apostrophe, minus signs are to be copied as such, and long lists of
/// choices may be broken.
std::string troff(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!out.empty()) out += "\n.br\n";
    out += "\\&" + with_replacements(line, {{'\\', "\\e"}, {'-', "\\-"}, {'|', "|\\:"}});
  }
  return out + "\n";
}

std::string literal(const std::string& text) { return ".PP\n.nf\n" + troff(text) + ".fi\n"; }

std::string man_options(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : arguments_of(app)) {
    out += ".TP\n.I " + troff(option->get_name()) + troff(option->get_description());
  }
  for (const CLI::Option* option : named_options(app)) {
    std::string value;
    const auto choices = choices_of(*option);
    if (!choices.empty()) {
      value = fmt::format(" {}", fmt::join(choices, "|"));
    } else if (takes_value(*option)) {
      value = " " + option->get_type_name();
    }
    out += ".TP\n.B " + troff(option->get_name(false, true) + value);
    out += troff(option->get_description());
    if (!option->get_default_str().empty()) out += troff("Default: " + option->get_default_str() + ".");
  }
  return out;
}

std::string words(const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, " ")); }

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : named_options(app)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(root)) names.push_back(command->get_name());
  return names;
}

/// Inside single quotes and zsh's own brackets and colons.
std::string zsh_text(const std::string& text) {
  return with_replacements(first_line(text), {{'\'', "'\\''"}, {'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'`', ""}});
}

/// The options for zsh's _arguments, with a star before repeatable ones.
std::string zsh_options(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : named_options(app)) {
    const auto choices = choices_of(*option);
    out += fmt::format(" \\\n        '{}--{}[{}]", option->get_expected_max() > 1 ? "*" : "",
                       option->get_lnames().front(), zsh_text(option->get_description()));
    if (!choices.empty()) {
      out += fmt::format(":value:({})", words(choices));
    } else if (takes_columns(*option)) {
      out += ":column:_unshuffle_columns";
    } else if (takes_value(*option)) {
      out += ":value:_files";
    }
    out += "'";
  }
  return out;
}

}  // namespace

std::string man_page(const CLI::App& root) {
  std::string out = fmt::format(".TH UNSHUFFLE 1 \"\" \"unshuffle {}\" \"User Commands\"\n", version);
  out += ".SH NAME\nunshuffle \\- " + with_replacements(root.get_description(), {{'-', "\\-"}}) + "\n";
  out += ".ad l\n.nh\n";  // lists of choices have no spaces to stretch, and names of options no hyphens to add
  out += ".SH SYNOPSIS\n.B unshuffle\n.I COMMAND\n[\n.I ARGUMENTS\n]\n";
  out += ".SH OPTIONS\n" + man_options(root);
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(root)) {
    out += ".SS " + troff("unshuffle " + command->get_name()) + troff(command->get_description());
    out += man_options(*command);
    if (!command->get_footer().empty()) out += literal(command->get_footer());
  }
  out += ".SH EXIT STATUS AND EXAMPLES\n" + literal(root.get_footer());
  return out;
}

std::string bash_completion(const CLI::App& root) {
  std::string out =
      "# bash completion for unshuffle\n_unshuffle() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} choices= columns= file name\n"
      "  COMPREPLY=()\n";
  out += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '{} {}' -- \"$word\"))\n    return\n  fi\n",
      words(command_names(root)), words(long_names(root)));
  out += "  case ${COMP_WORDS[1]}:$before in\n";
  for (const CLI::App* command : commands_of(root)) {
    for (const CLI::Option* option : named_options(*command)) {
      const auto choices = choices_of(*option);
      if (takes_columns(*option))
        out += fmt::format("    {}:--{}) columns=yes ;;\n", command->get_name(), option->get_lnames().front());
      if (choices.empty()) continue;
      out += fmt::format("    {}:--{}) choices='{}' ;;\n", command->get_name(), option->get_lnames().front(),
                         words(choices));
    }
  }
  // Of a list separated by commas the last name is completed.
  out +=
      "  esac\n  if [ -n \"$columns\" ]; then\n"
      "    for file in \"${COMP_WORDS[@]:2}\"; do\n"
      "      [ -f \"$file\" ] || continue\n"
      "      while IFS= read -r name; do\n"
      "        if [[ $name == \"${word##*,}\"* ]]; then COMPREPLY+=(\"${word%\"${word##*,}\"}$(printf %q "
      "\"$name\")\"); fi\n"
      "      done < <(\"${COMP_WORDS[0]}\" info \"$file\" --describe columns 2> /dev/null)\n"
      "    done\n    return\n  fi\n";
  out += "  if [ -z \"$choices\" ] && [[ $word == -* ]]; then\n    case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : commands_of(root)) {
    out += fmt::format("      {}) choices='{}' ;;\n", command->get_name(), words(long_names(*command)));
  }
  out +=
      "    esac\n  fi\n"
      "  if [ -n \"$choices\" ]; then COMPREPLY=($(compgen -W \"$choices\" -- \"$word\")); fi\n"
      "}\ncomplete -o default -F _unshuffle unshuffle\n";
  return out;
}

std::string zsh_completion(const CLI::App& root) {
  std::string out =
      "#compdef unshuffle\n_unshuffle_columns() {\n  local file\n  local -a names\n  for file in $words; do\n"
      "    [[ -f $file ]] && names+=(\"${(@f)$(unshuffle info $file --describe columns 2> /dev/null)}\")\n  done\n"
      "  compset -P '*,'\n  compadd -S '' -a names\n}\n_unshuffle() {\n  local curcontext=\"$curcontext\" state line\n "
      " _arguments -C" +
      zsh_options(root) + " \\\n        '1:command:((";
  for (const CLI::App* command : commands_of(root)) {
    out +=
        fmt::format("{}\\:\"{}\" ", command->get_name(),
                    with_replacements(zsh_text(command->get_description()), {{'"', ""}, {'(', "\\("}, {')', "\\)"}}));
  }
  out += "))' '*::argument:->arguments'\n  case $line[1] in\n";
  for (const CLI::App* command : commands_of(root)) {
    out += fmt::format("    {}) _arguments{} \\\n        '*:file:_files' ;;\n", command->get_name(),
                       zsh_options(*command));
  }
  return out + "  esac\n}\n_unshuffle \"$@\"\n";
}

}  // namespace unshuffle::app
