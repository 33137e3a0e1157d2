// A progress bar on a terminal, nothing when piped.
#pragma once

#include <functional>

namespace unshuffle::app {

/// Called with (done, total); empty when quiet or when stderr is not a terminal.
[[nodiscard]] std::function<bool(double, double)> progress_bar(bool quiet);

}  // namespace unshuffle::app
