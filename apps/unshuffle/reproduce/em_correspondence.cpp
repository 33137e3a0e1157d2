// Where stochastic EM gets stuck: the expected correspondence at its end, 30 rows, one feature.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "estimators/swap_chain.hpp"
#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle::app {
namespace em_correspondence_parts {

constexpr Index rows = 30;

/// Ranks, so that the true correspondence of a nearly noiseless sample is the diagonal.
std::vector<Index> ranks(const Vector& values) {
  std::vector<Index> order(static_cast<std::size_t>(values.size())), rank(order.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) { return values[a] < values[b]; });
  for (std::size_t k = 0; k < order.size(); ++k) rank[std::size_t(order[k])] = Index(k);
  return rank;
}

/// How often each pair is linked at (w, σ²), by one long chain.
Matrix expected_correspondence(const Problem& problem, const Model& bound, const Result& result, std::uint64_t seed) {
  const UnlinkedRows unlinked(problem, bound);
  SwapChain chain(unlinked.blocks(), unlinked.best(result.parameters), RandomStream(seed, 74));
  const PairCosts costs(bound, unlinked.tables(), result.parameters);
  const WeightedLinks links = chain.sample(costs, result.noise_sd * result.noise_sd, 20000, 200000);
  Matrix expected = Matrix::Zero(rows, rows);
  for (Index k = 0; k < links.links.size(); ++k) {
    expected(links.links.responses[std::size_t(k)], links.links.features[std::size_t(k)]) +=
        links.shares[std::size_t(k)];
  }
  return expected;
}

Measurements measure(const Settings& settings) {
  const Sample sample = sample_of(
      {.design = Design::sensing, .rows = rows, .dim_z = 1, .shuffle = 1, .noise = 0.01, .seed = settings.seed + 1});
  const Problem problem = completed(sample.train);
  const auto bound = Linear(false).bound_to(problem);
  const double truth = fit_named("oracle", sample, Linear(false), {}).parameters[0];
  // Rows follow the response; columns are placed by what they truly belong to.
  const std::vector<Index> response_rank = ranks(problem.y.col(0)), feature_rank = ranks(truth * problem.z.col(0));
  Measurements all;
  for (const std::string start : {"good", "poor"}) {
    const std::vector<double> slope{(start == "good" ? 0.7 : -0.2) * truth};
    const Result result = fit_named("em", sample, Linear(false), {.options = {{"start", slope}}});
    const Matrix expected = expected_correspondence(problem, *bound, result, settings.seed);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < rows; ++j) {
        all.push_back({start, double(response_rank[std::size_t(i)]), int(feature_rank[std::size_t(j)]), "em", "linked",
                       expected(i, j) / std::max(1e-300, expected.row(i).sum())});
      }
    }
    all.push_back({start, 0, 0, "em", "slope over truth", result.parameters[0] / truth});
  }
  return all;
}

Findings judge(const Measurements& all) {
  Findings findings;
  std::string slopes;
  double poor_diagonal = 0;
  for (const std::string& start : panels_of(all)) {
    const double slope = value_at(all, {start, "", "slope over truth"}, 0);
    slopes += fmt::format("{}{:.2f} from a {} start", slopes.empty() ? "" : ", ", slope, start);
    poor_diagonal =
        matrix_of(select(all, {start, "", "linked"}), rows, rows).trace() / rows;  // of the last, poor start
  }
  findings.claims.push_back(
      {"EM gets stuck at a correspondence that is not the true one.", poor_diagonal < 0.2,
       fmt::format("Slope over the true one: {}; from the poor start {:.0f} % of the expected links are true.", slopes,
                   100 * poor_diagonal)});
  return findings;
}

}  // namespace em_correspondence_parts

Experiment em_correspondence_experiment() {
  return {"em-correspondence", "The expected correspondence at which stochastic EM gets stuck.",
          em_correspondence_parts::measure, em_correspondence_parts::judge};
}

}  // namespace unshuffle::app
