// What is said to whoever sits at the terminal: names from files are part of it, and must not command the terminal.
#pragma once

#include <string_view>

namespace unshuffle::app {

/// On standard output.
void say(std::string_view text);

/// A line on standard error; that nobody reads it is no reason to stop.
void note(std::string_view text);
void complain(std::string_view text);

}  // namespace unshuffle::app
