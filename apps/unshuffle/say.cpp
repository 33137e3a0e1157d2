#include "say.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/text.hpp"

namespace unshuffle::app {
namespace {

void print_line(const char* kind, std::string_view text) {
  std::string line = printable(text);
  // One line, but for indented ones: a formula with a caret below it.
  constexpr std::string_view indent = "    ";
  for (std::size_t at = 0; at < line.size(); ++at)
    if (line[at] == '\n' && line.compare(at + 1, indent.size(), indent) != 0) line[at] = ' ';
  const char* clear = ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";  // of the line that shows progress
  std::fputs(fmt::format("{}unshuffle: {}: {}\n", clear, kind, line).c_str(), stderr);
}

bool terminal_has_colours() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == 0) &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

/// Null: none.
const char* colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::identified:
      return "\x1b[1;32m";
    case Verdict::weakly_identified:
      return "\x1b[1;33m";
    case Verdict::not_identifiable:
      return "\x1b[1;31m";
    default:
      return nullptr;
  }
}

}  // namespace

void say_summary(std::string_view summary, Verdict verdict) {
  std::string text = printable(summary);
  constexpr std::string_view label = "\nIdentifiability   ";
  const auto line = text.find(label);
  const char* colour = colour_of(verdict);
  if (terminal_has_colours() && colour != nullptr && line != std::string::npos) {
    text.insert(line + label.size() + std::string_view(name_of(verdict)).size(), "\x1b[0m");
    text.insert(line + label.size(), colour);
  }
  fmt::print("{}", text);
}

void say(std::string_view text) { fmt::print("{}", printable(text)); }
void note(std::string_view text) { print_line("note", text); }
void complain(std::string_view text) { print_line("error", text); }

}  // namespace unshuffle::app
