// Output to the terminal. It contains names from files, which must not control the terminal.
#pragma once

#include <string_view>

#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle::app {

/// On standard output.
void say(std::string_view text);

/// The summary of a fit, with its verdict in colour on a terminal that allows it (NO_COLOR, TERM=dumb).
void say_summary(std::string_view summary, Verdict verdict);

/// A line on standard error; failure to write it is ignored.
void note(std::string_view text);
void complain(std::string_view text);

}  // namespace unshuffle::app
