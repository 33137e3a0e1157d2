#include "likelihood/response_law.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace unshuffle {

namespace {

constexpr Index centres = 48;
constexpr double width = 0.3;  // of a law around a centre, in standard deviations of the middle half

}  // namespace

ResponseLaw::ResponseLaw(const Matrix& responses) : centres_(centres, responses.cols()), scale_(responses.cols()) {
  constexpr double normal_quartiles = 1.349;  // standard deviations between them
  const Index n = responses.rows();
  for (Index o = 0; o < responses.cols(); ++o) {
    std::vector<double> sorted(responses.col(o).begin(), responses.col(o).end());
    std::sort(sorted.begin(), sorted.end());
    const auto quantile = [&](Index k, Index of) { return sorted[std::size_t((2 * k + 1) * n / (2 * of))]; };
    for (Index k = 0; k < centres; ++k) centres_(k, o) = quantile(k, centres);
    const double spread = std::sqrt((responses.col(o).array() - responses.col(o).mean()).square().mean());
    const double middle = (quantile(3 * centres / 4, centres) - quantile(centres / 4, centres)) / normal_quartiles;
    // Half of the responses may be one value.
    scale_(o) = width * std::max({middle, 0.1 * spread, std::numeric_limits<double>::min()});
  }
}

double ResponseLaw::log_density(const VectorRef& outputs) const {
  const double unit = 2 / (std::numbers::pi * std::sqrt(3.0));  // t law at its centre
  double sum = 0;
  for (Index o = 0; o < outputs.size(); ++o) {
    const auto apart = (outputs(o) - centres_.col(o).array()) / scale_(o);
    sum += std::log(unit / scale_(o) * (1 + apart.square() / 3).square().inverse().mean());
  }
  return sum;
}

}  // namespace unshuffle
