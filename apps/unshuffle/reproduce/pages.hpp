// The results as an HTML page, and the same in Markdown.
#pragma once

#include <string>
#include <vector>

#include "reproduce/experiment.hpp"

namespace unshuffle::app {

struct Reproduced {
  Experiment experiment;
  Findings findings;
};

/// Every result with its figure (NAME.svg beside the page) and the paper's claims.
[[nodiscard]] std::string index_html(const std::vector<Reproduced>& results);

/// The same in Markdown.
[[nodiscard]] std::string results_markdown(const std::vector<Reproduced>& results);

}  // namespace unshuffle::app
