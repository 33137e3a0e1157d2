// The results as an HTML page, and the same in Markdown.
#pragma once

#include <string>
#include <vector>

#include "reproduce/experiment.hpp"

namespace unshuffle::app {

struct Result {
  Experiment experiment;
  Findings findings;
};

/// Every result with its figure (NAME.svg beside the page) and the paper's claims.
[[nodiscard]] std::string index_html(const std::vector<Result>& results);

/// The same in Markdown.
[[nodiscard]] std::string results_markdown(const std::vector<Result>& results);

}  // namespace unshuffle::app
