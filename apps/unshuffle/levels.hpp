// A packaged program is compiled for any processor and brings faster builds of itself along.
#pragma once

namespace unshuffle::app {

/// Goes on as the fastest installed build that this processor can run; returns if that is the running one.
void run_fastest_build(char** argv);

}  // namespace unshuffle::app
