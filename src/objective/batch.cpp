#include "objective/batch.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle {

namespace {

void draw_from(const std::vector<Index>& rows, double share, RandomStream& random, std::vector<Index>& drawn) {
  const auto count = static_cast<Index>(std::ceil(share * double(rows.size()) - 1e-9));
  for (const Index k : sample_rows(Index(rows.size()), count, random)) drawn.push_back(rows[std::size_t(k)]);
}

RowFacts facts_of_some(const RowFacts& all, const std::vector<Index>& responses, const std::vector<Index>& features) {
  const auto some = [](const Vector& values, const std::vector<Index>& rows) {
    return values.size() > 0 ? Vector(values(rows)) : Vector();
  };
  RowFacts made{.response_offset = some(all.response_offset, responses),
                .feature_offset = some(all.feature_offset, features),
                .trials = some(all.trials, responses),
                .event = some(all.event, responses)};
  if (all.mismatch.cols() > 0) made.mismatch = all.mismatch(responses, Eigen::all);
  made.mismatch_names = all.mismatch_names;
  made.wrong_rate = some(all.wrong_rate, responses);
  made.audit = all.audit;
  return made;
}

}  // namespace

Problem some_rows(const Problem& problem, const std::vector<Index>& responses, const std::vector<Index>& features) {
  Problem batch;
  batch.order = problem.order;
  batch.facts = facts_of_some(problem.facts, responses, features);
  batch.y = problem.y(responses, Eigen::all);
  if (problem.x.cols() > 0) batch.x = problem.x(responses, Eigen::all);
  batch.z = problem.z(features, Eigen::all);
  if (problem.response_weights.size() > 0) batch.response_weights = problem.response_weights(responses);
  if (problem.feature_weights.size() > 0) batch.feature_weights = problem.feature_weights(features);
  if (!problem.response_groups.empty()) {
    for (const Index i : responses) batch.response_groups.push_back(problem.response_groups[std::size_t(i)]);
    for (const Index j : features) batch.feature_groups.push_back(problem.feature_groups[std::size_t(j)]);
  }
  std::vector<Index> response_place(std::size_t(problem.responses()), -1);
  for (std::size_t k = 0; k < responses.size(); ++k) response_place[std::size_t(responses[k])] = Index(k);
  std::vector<Index> feature_place(std::size_t(problem.features()), -1);
  for (std::size_t k = 0; k < features.size(); ++k) feature_place[std::size_t(features[k])] = Index(k);
  for (const auto& [response_row, feature_row] : problem.known) {
    const Index i = response_place[std::size_t(response_row)], j = feature_place[std::size_t(feature_row)];
    if (i >= 0 && j >= 0) batch.known.push_back({i, j});
  }
  for (const auto& [response_row, feature_row, weight] : problem.prior) {
    const Index i = response_place[std::size_t(response_row)], j = feature_place[std::size_t(feature_row)];
    if (i >= 0 && j >= 0) batch.prior.push_back({i, j, weight});
  }
  for (const SoftKey& key : problem.soft_keys) {
    SoftKey some{{}, {}, key.agreement};
    for (const Index i : responses) some.response_labels.push_back(key.response_labels[std::size_t(i)]);
    for (const Index j : features) some.feature_labels.push_back(key.feature_labels[std::size_t(j)]);
    batch.soft_keys.push_back(std::move(some));
  }
  batch.y_names = problem.y_names;
  batch.x_names = problem.x_names;
  batch.z_names = problem.z_names;
  return completed(std::move(batch));
}

// A known pair is a block of one row, which is always drawn.
Problem draw_batch(const Problem& problem, Index rows, RandomStream& random) {
  const double response_share = std::min(1.0, double(rows) / double(problem.responses()));
  const double feature_share = std::min(1.0, double(rows) / double(problem.features()));
  std::vector<Index> responses;
  std::vector<Index> features;
  for (const Block& block : blocks_of(problem)) {
    draw_from(block.response_rows, response_share, random, responses);
    draw_from(block.feature_rows, feature_share, random, features);
  }
  return some_rows(problem, responses, features);
}

Evaluation evaluate_batch(const Problem& problem, const Model& bound, const EvaluatorOptions& options,
                          const VectorRef& w, Index rows, RandomStream& random) {
  const Problem batch = draw_batch(problem, rows, random);
  Evaluator evaluator(batch, bound, options);
  return evaluator.evaluate(w);
}

}  // namespace unshuffle
