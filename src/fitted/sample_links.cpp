#include "fitted/sample_links.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/in_parallel.hpp"
#include "estimators/unlinked.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

PairWeights::PairWeights(const Problem& problem, const Model& bound, const FittedLaw& law, double noise_sd)
    : problem_(problem),
      bound_(bound),
      family_(family_of(law.family)),
      shape_(law.log_shape()),
      on_line_(bound.additive() != nullptr && problem.outputs() == 1),
      x_(bound.basis(Side::response, problem.x)),
      z_(bound.basis(Side::feature, problem.z)) {
  constexpr double least = 1e-12;  // of the spread of the responses: noise so small decides every link
  const double spread = column_spreads(problem.y).maxCoeff();
  if (law.family == FamilyKind::gaussian) shape_(0) = 2 * std::log(std::max(noise_sd, least * spread));
}

void PairWeights::move_to(const Vector& w) {
  const AdditiveModel* additive = bound_.additive();
  if (additive == nullptr) return squared_costs(bound_, {x_, problem_.y, z_}, w, costs_);
  response_part_ = Matrix::Zero(problem_.responses(), problem_.outputs());
  if (x_.cols() > 0) response_part_ = additive->part(Side::response, x_, w);
  feature_part_ = additive->part(Side::feature, z_, w);
  const RowFacts& facts = problem_.facts;
  if (facts.response_offset.size() > 0) response_part_.col(0) += facts.response_offset;
  if (facts.feature_offset.size() > 0) feature_part_.col(0) += facts.feature_offset;
}

double PairWeights::operator()(Index i, Index j) const {
  if (family_.kind() != FamilyKind::gaussian) {
    const double trials = problem_.facts.trials.size() > 0 ? problem_.facts.trials(i) : 1;
    return family_.log_density({problem_.y(i, 0), response_part_(i, 0) + feature_part_(j, 0), trials}, shape_).value;
  }
  const double squares = costs_.size() > 0
                             ? costs_(i, j)
                             : (problem_.y.row(i) - response_part_.row(i) - feature_part_.row(j)).squaredNorm();
  return -0.5 * squares * std::exp(-shape_(0));
}

double PairWeights::place(Side side, Index row) const {
  if (side == Side::feature) return feature_part_(row, 0);
  const double y = problem_.y(row, 0), part = response_part_(row, 0);
  const double trials = problem_.facts.trials.size() > 0 ? problem_.facts.trials(row) : 1;
  return family_.linked(y, trials) - part;
}

/// What is known of links in the order given.
struct LinkSampler::Order {
  Links links;
  FamilyRows rows;
  LinkOdds odds;
  Vector log_other;
};

struct LinkSampler::State {
  std::vector<Index> responses, features;
  Matrix log_prior;  ///< Empty: none.
  std::vector<Index> start;
  std::optional<LinkChain> chain{};
};

namespace {

bool rests_on_order(const Estimator& chosen) {
  return std::holds_alternative<Mixture>(chosen) || std::holds_alternative<Adjusted>(chosen);
}

Matrix log_prior_of(const Problem& problem, const std::vector<Index>& responses, const std::vector<Index>& features) {
  if (!problem.has_prior()) return {};
  Matrix logs = log_weights_of_keys(problem, responses, features);
  const auto place_in = [](const std::vector<Index>& rows, Index row) {
    const auto found = std::find(rows.begin(), rows.end(), row);
    return found == rows.end() ? Index{-1} : Index(found - rows.begin());
  };
  for (const PairWeight& pair : problem.prior) {
    const Index i = place_in(responses, pair.response_row), j = place_in(features, pair.feature_row);
    if (i >= 0 && j >= 0) logs(i, j) += std::log(pair.weight);
  }
  return logs;
}

/// As many pairs as the shorter side has rows, at equal distances on the longer one.
std::vector<Index> spread_links(Index rows, Index columns) {
  std::vector<Index> column(std::size_t(rows), -1);
  const Index shorter = std::min(rows, columns);
  for (Index k = 0; k < shorter; ++k) {
    const auto far = [&](Index count) { return (2 * k + 1) * count / (2 * shorter); };
    column[std::size_t(far(rows))] = far(columns);
  }
  return column;
}

}  // namespace

LinkSampler::LinkSampler(Problem problem, const Model& bound, const Result& result, const FitContext& context,
                         std::uint64_t seed)
    : problem_(std::move(problem)),
      bound_(bound),
      result_(result),
      context_(context),
      seed_(seed),
      weights_(problem_, bound, context.law, result.noise_sd) {
  if (!traits_of(context.chosen).likelihood) {
    throw InvalidInput(fmt::format("links cannot be drawn from a fit by {}, which has no law of the noise; {} have one",
                                   name_of(context.chosen),
                                   option("method", estimators_with(&EstimatorTraits::likelihood))));
  }
  if (context.law.family == FamilyKind::cox)
    throw InvalidInput("links of a fit by cox cannot be drawn: they need its baseline hazard, which it does not keep");
  if (!rests_on_order(context.chosen)) return;
  if (problem_.outputs() != 1) {
    throw InvalidInput(
        fmt::format("links of rows in order can be drawn for one response; the fit has {}", problem_.outputs()));
  }
  const Links links = links_in_order(problem_);
  const CandidateLinks candidates = candidates_of(problem_, bound, links);
  const Family& family = family_of(context.law.family);
  auto order = std::make_shared<Order>();
  order->links = links;
  order->rows = family_rows(problem_, bound, links, candidates);
  order->odds = link_odds(problem_.facts, links, candidates.known);
  order->log_other = log_law_of_wrong_links(family, order->rows, seed);
  order_ = std::move(order);
}

Vector LinkSampler::drawn_coefficients(RandomStream& random) const {
  const Matrix& covariance = result_.covariance;
  if (covariance.size() == 0) return result_.parameters;
  const Eigen::SelfAdjointEigenSolver<Matrix> axes(covariance);
  const Vector lengths = axes.eigenvalues().cwiseMax(0).cwiseSqrt();
  const Vector unit = Vector::NullaryExpr(covariance.rows(), [&] { return random.normal(); });
  return result_.parameters + axes.eigenvectors() * lengths.cwiseProduct(unit);
}

LinkSampler::State LinkSampler::begin(std::vector<Index> responses, std::vector<Index> features) const {
  if (weights_.on_line()) {
    const auto by_place = [&](Side side) {
      return [this, side](Index a, Index b) { return weights_.place(side, a) < weights_.place(side, b); };
    };
    std::stable_sort(responses.begin(), responses.end(), by_place(Side::response));
    std::stable_sort(features.begin(), features.end(), by_place(Side::feature));
  }
  State state{responses, features, log_prior_of(problem_, responses, features), {}};
  const auto n = Index(responses.size()), m = Index(features.size());
  if (std::max(n, m) <= most_drawn_exactly) return state;
  state.start = spread_links(n, m);
  if (weights_.on_line()) return state;
  const Links best = UnlinkedRows(problem_, bound_).best_among(responses, features, result_.parameters);
  std::fill(state.start.begin(), state.start.end(), Index{-1});
  for (Index k = 0; k < best.size(); ++k) {
    const auto row = std::find(responses.begin(), responses.end(), best.responses[std::size_t(k)]) - responses.begin();
    const auto column = std::find(features.begin(), features.end(), best.features[std::size_t(k)]) - features.begin();
    state.start[std::size_t(row)] = Index(column);
  }
  return state;
}

LinkSet LinkSampler::draw_block(State& state, bool first, RandomStream& random) const {
  constexpr Index burn_in = 200, between = 50;  // sweeps
  const auto n = Index(state.responses.size()), m = Index(state.features.size());
  const auto weight = [&](Index i, Index j) {
    return weights_(state.responses[std::size_t(i)], state.features[std::size_t(j)]) +
           (state.log_prior.size() > 0 ? state.log_prior(i, j) : 0);
  };
  std::vector<Index> column;
  if (state.start.empty()) {
    Matrix logs(n, m);
    for (Index j = 0; j < m; ++j)
      for (Index i = 0; i < n; ++i) logs(i, j) = weight(i, j);
    column = draw_exactly(logs, random);
  } else {
    if (!state.chain) state.chain.emplace(state.start, m);
    state.chain->run(weight, first ? burn_in : between, random);
    column = state.chain->column_of_row();
  }
  LinkSet links;
  for (Index i = 0; i < n; ++i) {
    const Index j = column[std::size_t(i)];
    if (j >= 0) links.push_back({state.responses[std::size_t(i)], state.features[std::size_t(j)]});
  }
  return links;
}

/// Links in the order given that are drawn as right, and the rows that they leave.
LinkSampler::Kept LinkSampler::kept_links(const Vector& w, RandomStream& random) const {
  Kept kept{{},
            std::vector<char>(std::size_t(problem_.responses()), 0),
            std::vector<char>(std::size_t(problem_.features()), 0)};
  const Vector right = link_probabilities_at(family_of(context_.law.family), order_->rows, order_->odds,
                                             order_->log_other, w, weights_.shape());
  for (Index k = 0; k < right.size(); ++k) {
    if (random.uniform() >= right(k)) continue;
    const Index i = order_->links.responses[std::size_t(k)], j = order_->links.features[std::size_t(k)];
    kept.responses[std::size_t(i)] = kept.features[std::size_t(j)] = 1;
    kept.links.push_back({i, j});
  }
  return kept;
}

LinkSet LinkSampler::draw_rest(const Block& block, const Kept& kept, RandomStream& random) const {
  const auto left = [](const std::vector<Index>& all, const std::vector<char>& gone) {
    std::vector<Index> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [&](Index row) { return gone[std::size_t(row)] == 0; });
    return some;
  };
  std::vector<Index> responses = left(block.response_rows, kept.responses);
  std::vector<Index> features = left(block.feature_rows, kept.features);
  if (responses.empty() || features.empty()) return {};
  State state = begin(std::move(responses), std::move(features));
  return draw_block(state, true, random);
}

std::vector<LinkSet> LinkSampler::draw(Index samples) {
  const std::vector<Block> blocks = blocks_of(problem_);
  std::vector<State> states;
  weights_.move_to(result_.parameters);
  if (!order_)
    for (const Block& block : blocks) states.push_back(begin(block.response_rows, block.feature_rows));
  std::vector<LinkSet> sets;
  for (Index sample = 0; sample < samples; ++sample) {
    const std::uint64_t number = std::uint64_t(sample) * (blocks.size() + 1);
    RandomStream common(seed_, Stream::link_draws, number);
    const Vector w = drawn_coefficients(common);
    weights_.move_to(w);
    const Kept kept = order_ ? kept_links(w, common) : Kept{};
    std::vector<LinkSet> of_blocks(blocks.size());
    in_parallel(blocks.size(), [&](std::size_t b) {
      RandomStream random(seed_, Stream::link_draws, number + 1 + b);
      of_blocks[b] = order_ ? draw_rest(blocks[b], kept, random) : draw_block(states[b], sample == 0, random);
    });
    LinkSet links = kept.links;
    for (const LinkSet& some : of_blocks) links.insert(links.end(), some.begin(), some.end());
    std::sort(links.begin(), links.end(),
              [](const KnownPair& a, const KnownPair& b) { return a.response_row < b.response_row; });
    sets.push_back(std::move(links));
  }
  return sets;
}

}  // namespace unshuffle
