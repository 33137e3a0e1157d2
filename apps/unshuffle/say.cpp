#include "say.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/text.hpp"

namespace unshuffle::app {
namespace {

void print_line(const char* kind, std::string_view text) {
  std::string line = printable(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fputs(fmt::format("unshuffle: {}: {}\n", kind, line).c_str(), stderr);
}

}  // namespace

void say(std::string_view text) { fmt::print("{}", printable(text)); }
void note(std::string_view text) { print_line("note", text); }
void complain(std::string_view text) { print_line("error", text); }

}  // namespace unshuffle::app
