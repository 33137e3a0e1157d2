// Gromov-Wasserstein alignment, then regression on the links it made.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimators/unlinked.hpp"
#include "starts/alignment.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

Estimate estimate(const SlicedGw& options, const Input& input) {
  const UnlinkedRows rows(input.problem, input.bound);
  const Matrix known_of_responses = response_columns(input.problem);
  Links links;
  double distortion = 0;
  std::uint64_t number = 0;
  for (const Block& block : rows.blocks()) {
    if (block.response_rows.size() != block.feature_rows.size()) {
      throw InvalidInput(
          fmt::format("sliced-gw needs as many responses as features in every group; {} and {} were given",
                      block.response_rows.size(), block.feature_rows.size()));
    }
    const Matrix u = known_of_responses(block.response_rows, Eigen::all);
    const Matrix v = input.problem.z(block.feature_rows, Eigen::all);
    const std::vector<Index> partner =
        sliced_alignment(u, v, options.slices, RandomStream(input.run.seed, Stream::slices, number++));
    distortion += gromov_wasserstein_cost(u, v(partner, Eigen::all)) * double(partner.size());
    for (std::size_t k = 0; k < partner.size(); ++k) {
      append(links, {{block.response_rows[k]}, {block.feature_rows[std::size_t(partner[k])]}});
    }
  }
  Estimate result = regression_on(input, rows, links, "alignment");
  forget_std_errors(result);
  result.candidates.front().message +=
      fmt::format(" that distort squared distances by {:.4g}", std::sqrt(distortion / double(links.size())));
  return result;
}

Estimate estimate(const SinkhornGw& options, const Input& input) {
  const UnlinkedRows rows(input.problem, input.bound);
  const Matrix known_of_responses = response_columns(input.problem);
  Links links;
  Candidate told;
  told.converged = true;
  for (const Block& block : rows.blocks()) {
    const Alignment found = aligned(known_of_responses(block.response_rows, Eigen::all),
                                    input.problem.z(block.feature_rows, Eigen::all), options.epsilon);
    for (std::size_t k = 0; k < found.links.responses.size(); ++k) {
      append(links, {{block.response_rows[std::size_t(found.links.responses[k])]},
                     {block.feature_rows[std::size_t(found.links.features[k])]}});
    }
    told.iterations = std::max(told.iterations, found.iterations);
    if (found.converged) continue;
    told.converged = false;
    told.message = found.message;
  }
  Estimate result = regression_on(input, rows, links, "alignment");
  Candidate& answer = result.candidates.front();
  answer.converged = told.converged;
  answer.iterations = told.iterations;
  if (!told.converged) answer.message = told.message;
  forget_std_errors(result);
  return result;
}

}  // namespace unshuffle
