// Alternating minimisation (Abid, Poon & Zou 2017): the best matching at w, then w on the matched rows, repeatedly.
// Both steps lower Σ|y - f|² over the links, so with exact refits the loop ends when a matching repeats.
#include <cmath>

#include "estimators/each_start.hpp"
#include "estimators/unlinked.hpp"
#include "objective/batch.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {

namespace {

constexpr int am_rounds = 500;

int round_limit(const Am& options) {
  if (options.limit.max_iterations > 0) return options.limit.max_iterations;
  return options.matched_step == MatchedStep::gradient ? 2000 : am_rounds;
}

class Alternation {
 public:
  Alternation(const Am& options, const Input& input, const UnlinkedRows& rows, const StartAt& at)
      : options_(options),
        input_(input),
        rows_(rows),
        w_(at.start.parameters),
        index_(at.index),
        tick_(at.tick),
        random_(input.run.seed, Stream::alternation_batches, std::uint64_t(at.index)) {
    result_.candidate.start = at.start.kind;
    result_.candidate.message = "all steps taken before the matching settled";
  }

  Descended run() {
    const bool exact = options_.matched_step == MatchedStep::exact;
    for (int round = 0; round < round_limit(options_) && !result_.candidate.converged; ++round) {
      stop_if_asked();
      exact ? refit() : step();
      ++result_.candidate.iterations;
      if (!tick_()) {
        result_.stopped = true;
        result_.candidate.message = "stopped on request";
        break;
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  void refit() {
    Links links = rows_.best(w_);
    if (links == before_) {
      result_.candidate.converged = true;
      result_.candidate.message = "the matching repeats";
      return;
    }
    const LeastSquares solved = least_squares(input_.bound, rows_.linked(links), w_, rows_.weights(links));
    w_ = solved.parameters;
    before_ = std::move(links);
    record(solved.squares, 0);
  }

  /// One step of momentum on Σ|y - f|² over the links of a fresh batch (all rows when there are no batches).
  void step() {
    const StepOptions& step = options_.step;
    NormalEquations equations;
    if (step.batch > 0) {
      const Problem batch = draw_batch(input_.problem, step.batch, random_);
      equations = linearised(UnlinkedRows(batch, input_.bound));
    } else {
      equations = linearised(rows_);
    }
    const Vector gradient = -2 * equations.right;
    if (velocity_.size() == 0) velocity_ = Vector::Zero(w_.size());
    velocity_ = step.momentum * velocity_ - step.learning_rate * gradient;
    w_ += velocity_;
    record(equations.squares, gradient.norm());
    const double unit = std::sqrt(equations.squares * equations.matrix.diagonal().maxCoeff());
    if (step.batch == 0 && gradient.norm() <= options_.gradient_tolerance * unit) {
      result_.candidate.converged = true;
      result_.candidate.message = "gradient below its tolerance";
    }
  }

  [[nodiscard]] NormalEquations linearised(const UnlinkedRows& rows) const {
    const Links links = rows.best(w_);
    return normal_equations(input_.bound, rows.linked(links), w_, rows.weights(links));
  }

  void record(double squares, double gradient_norm) {
    ++result_.evaluations;
    result_.trace.push_back({.start = index_,
                             .iteration = result_.candidate.iterations,
                             .epsilon = 0,
                             .objective = squares,
                             .gradient_norm = gradient_norm,
                             .marginal_error = 0,
                             .inner_iterations = 1});
  }

  void finish() {
    const Links links = rows_.best(w_);
    const Vector weights = rows_.weights(links);
    const Vector squared = residuals(input_.bound, rows_.linked(links), w_).rowwise().squaredNorm();
    result_.candidate.parameters = w_;
    result_.candidate.objective = weights.size() > 0 ? weights.dot(squared) : squared.sum();
    result_.noise_sd = std::sqrt(result_.candidate.objective / double(links.size() * input_.problem.outputs()));
    if (!std::isfinite(result_.candidate.objective)) {
      result_.candidate.converged = false;
      result_.candidate.message = "the steps diverged; try a smaller learning rate";
    }
  }

  const Am& options_;
  const Input& input_;
  const UnlinkedRows& rows_;
  Vector w_;
  Vector velocity_{};
  Links before_{};
  int index_;
  const Tick& tick_;
  RandomStream random_;
  Descended result_{};
};

}  // namespace

Estimate estimate(const Am& given, const Input& input) {
  const Am options = given.paper.paper
                         ? with_paper_settings(given, input.problem.responses(), input.bound.linear_in_parameters())
                         : given;
  const UnlinkedRows rows(input.problem, input.bound);
  const std::vector<Start> starts = make_starts(input.problem, input.bound, options.starts, input.run.seed);
  const auto alternate = [&](const StartAt& at) { return Alternation(options, input, rows, at).run(); };
  return best_of(for_each_start({"am", starts, double(round_limit(options))}, input.run, alternate), starts);
}

}  // namespace unshuffle
