// Output to the terminal. It contains names from files, which must not control the terminal.
#pragma once

#include <string_view>

namespace unshuffle::app {

/// On standard output.
void say(std::string_view text);

/// A line on standard error; failure to write it is ignored.
void note(std::string_view text);
void complain(std::string_view text);

}  // namespace unshuffle::app
