// Stochastic EM (Abid & Zou 2018): the matching is a hidden variable. E step: how often each pair is linked under the
// posterior at (w, σ²), by Metropolis exchanges; M step: w by least squares on all pairs, weighted by that, and σ² from
// their mean squared residual. Hard EM replaces the average by the best matching visited.
//
// Without features on the response side, pairs of one feature row differ in y only, and
//   Σ_k v_k |y_k - f_j|² = V |ȳ - f_j|² + Σ_k v_k |y_k - ȳ|²,
// so the M step is a regression of the averaged responses on m rows.
#include <cmath>

#include "core/in_parallel.hpp"
#include "estimators/each_start.hpp"
#include "estimators/swap_chain.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {

namespace {

constexpr int em_rounds = 100;
constexpr int quiet_rounds = 3;

int round_limit(const Em& options) {
  return options.limit.max_iterations > 0 ? options.limit.max_iterations : em_rounds;
}

enum class Matchings { averaged, best };

/// What the M step regresses.
struct Expected {
  LinkedRows rows;
  Vector weights;
  double within = 0;  ///< Σ v|y - ȳ|², the part no w can explain.
  double total = 0;   ///< Σ v.
};

Expected all_pairs(const UnlinkedRows& rows, const WeightedLinks& links) {
  Expected result;
  result.rows = rows.linked(links.links);
  result.weights = Eigen::Map<const Vector>(links.shares.data(), Index(links.shares.size()));
  if (const Vector weights = rows.weights(links.links); weights.size() > 0) {
    result.weights.array() *= weights.array();
  }
  result.total = result.weights.sum();
  return result;
}

Expected merged_by_feature(const UnlinkedRows& rows, const Links& links, const Expected& pairs) {
  const Index m = rows.tables().z.rows();
  Matrix sums = Matrix::Zero(m, pairs.rows.y.cols());
  Vector weights = Vector::Zero(m);
  for (Index k = 0; k < links.size(); ++k) {
    const Index j = links.features[std::size_t(k)];
    sums.row(j) += pairs.weights(k) * pairs.rows.y.row(k);
    weights(j) += pairs.weights(k);
  }
  std::vector<Index> used;
  for (Index j = 0; j < m; ++j) {
    if (weights(j) > 0) used.push_back(j);
  }
  Expected result;
  result.weights = weights(used);
  result.rows.z = rows.tables().z(used, Eigen::all);
  result.rows.y = result.weights.cwiseInverse().asDiagonal() * sums(used, Eigen::all);
  result.total = pairs.total;
  result.within = pairs.weights.dot(pairs.rows.y.rowwise().squaredNorm()) -
                  result.weights.dot(result.rows.y.rowwise().squaredNorm());
  result.within = std::max(0.0, result.within);
  return result;
}

class ExpectationMaximisation {
 public:
  ExpectationMaximisation(const Em& options, Matchings matchings, const Input& input, const UnlinkedRows& rows,
                          const StartAt& at)
      : options_(options),
        hard_(matchings == Matchings::best),
        input_(input),
        rows_(rows),
        w_(at.start.parameters),
        index_(at.index),
        tick_(at.tick) {
    const Start& start = at.start;
    result_.candidate.start = start.kind;
    // σ² can be estimated from the row order; a start with known σ² should begin where few exchanges are needed.
    const bool in_order = input.problem.order_is_a_hint() && !(start.noise_sd > 0);
    const Links first = in_order ? links_in_order(input.problem) : rows.best(w_);
    for (int chain = 0; chain < options.chains.count; ++chain) {
      const auto number = std::uint64_t(index_) * 4096 + std::uint64_t(chain);
      chains_.emplace_back(rows.blocks(), first, RandomStream(input.run.seed, Stream::swap_chain, number));
    }
    const PairCosts costs(input.bound, rows.tables(), w_);
    variance_ = start.noise_sd > 0 ? start.noise_sd * start.noise_sd : chains_.front().total_cost(costs) / terms();
    floor_ = 1e-12 * input.problem.y.squaredNorm() / terms();
    variance_ = std::max(variance_, floor_);
  }

  Descended run() {
    int quiet = 0;
    Candidate& answer = result_.candidate;
    answer.message = "all iterations taken before w settled";
    while (answer.iterations < round_limit(options_) && quiet < quiet_rounds) {
      stop_if_asked();
      quiet = iterate() ? quiet + 1 : 0;
      ++answer.iterations;
      if (tick_()) continue;
      result_.stopped = true;
      answer.message = "stopped on request";
      break;
    }
    answer.converged = quiet >= quiet_rounds;
    if (answer.converged) answer.message = "w moves less than a tenth of a standard error";
    answer.parameters = w_;
    answer.objective = squares_;
    result_.noise_sd = std::sqrt(variance_);
    return std::move(result_);
  }

 private:
  [[nodiscard]] double terms() const { return double(chains_.front().positions() * input_.problem.outputs()); }

  /// One E and one M step; returns whether w hardly moved.
  bool iterate() {
    const Expected expected = hard_ ? expect_hard() : expect_soft();
    const LeastSquares solved = least_squares(input_.bound, expected.rows, w_, expected.weights, 10);
    const Vector move = solved.parameters - w_;
    w_ = solved.parameters;
    squares_ = solved.squares + expected.within;
    variance_ = std::max(floor_, squares_ / (expected.total * double(input_.problem.outputs())));
    ++result_.evaluations;
    result_.trace.push_back({.start = index_,
                             .iteration = result_.candidate.iterations,
                             .epsilon = 2 * variance_,
                             .objective = squares_,
                             .gradient_norm = 0,
                             .marginal_error = 0,
                             .inner_iterations = int(proposals())});
    return move.dot(solved.matrix * move) <= 0.01 * double(w_.size()) * variance_;
  }

  [[nodiscard]] long proposals() const {
    return std::lround(std::ceil(options_.chains.swaps * double(chains_.front().positions())));
  }

  Expected expect_soft() {
    const PairCosts costs(input_.bound, rows_.tables(), w_);
    std::vector<WeightedLinks> sampled(chains_.size());
    in_parallel(chains_.size(), [&](std::size_t k) {
      sampled[k] = chains_[k].sample(costs, variance_, proposals() / 2, proposals() - proposals() / 2);
    });
    WeightedLinks all;
    for (const WeightedLinks& one : sampled) {
      append(all.links, one.links);
      for (const double share : one.shares) all.shares.push_back(share / double(chains_.size()));
    }
    const Expected pairs = all_pairs(rows_, all);
    return rows_.tables().x.cols() > 0 ? pairs : merged_by_feature(rows_, all.links, pairs);
  }

  Expected expect_hard() {
    const PairCosts costs(input_.bound, rows_.tables(), w_);
    std::vector<Links> visited(chains_.size());
    in_parallel(chains_.size(),
                [&](std::size_t k) { visited[k] = chains_[k].best_visited(costs, variance_, proposals()); });
    std::size_t best = 0;
    for (std::size_t k = 1; k < chains_.size(); ++k) {
      if (chains_[k].total_cost(costs) < chains_[best].total_cost(costs)) best = k;
    }
    const std::vector<double> ones(visited[best].responses.size(), 1.0);
    return all_pairs(rows_, {visited[best], ones});
  }

  const Em& options_;
  bool hard_;
  const Input& input_;
  const UnlinkedRows& rows_;
  Vector w_;
  int index_;
  const Tick& tick_;
  std::vector<SwapChain> chains_{};
  double variance_ = 0;
  double floor_ = 0;
  double squares_ = 0;
  Descended result_{};
};

Estimate run_em(const char* name, const Em& options, Matchings matchings, const Input& input) {
  const UnlinkedRows rows(input.problem, input.bound);
  const std::vector<Start> starts = make_starts(input.problem, input.bound, options.starts, input.run.seed);
  const auto work = [&](const StartAt& at) {
    return ExpectationMaximisation(options, matchings, input, rows, at).run();
  };
  return best_of(for_each_start({name, starts, double(round_limit(options))}, input.run, work), starts);
}

}  // namespace

Estimate estimate(const Em& options, const Input& input) {
  Estimate result = run_em("em", options, Matchings::averaged, input);
  result.objective_name = "expected squared residuals";
  return result;
}

Estimate estimate(const HardEm& options, const Input& input) {
  return run_em("hard-em", options.em, Matchings::best, input);
}

}  // namespace unshuffle
