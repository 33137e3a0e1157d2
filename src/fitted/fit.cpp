#include "unshuffle/fitted/fit.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/checkpoint.hpp"
#include "core/peak_memory.hpp"
#include "estimators/method.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {

namespace {

using Clock = std::chrono::steady_clock;

/// Limits the threads of every parallel loop of the calling thread while it lives.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) : before_(omp_get_max_threads()) {
    if (threads > 0) omp_set_num_threads(threads);
  }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

/// A method that chooses its links by itself would pass over what is known of them.
void require_prior_is_read(const Problem& problem, const MethodInfo& method) {
  if (!problem.has_prior() || method.prior) return;
  std::string able;
  for (const MethodInfo& info : known_methods()) {
    if (info.prior) able += fmt::format("{}{}", able.empty() ? "" : ", ", info.name);
  }
  throw InvalidInput(
      fmt::format("{} cannot use prior weights of pairs or soft groups; methods that can: {}", method.name, able));
}

/// The first sentence is about the transport problem at the answer, which only some methods minimise themselves.
std::string in_words(const Evaluation& last, const Estimate& estimate) {
  const Candidate& best = estimate.candidates.front();
  const std::string outer = fmt::format("{} after {} iterations: {}", best.converged ? "converged" : "did not converge",
                                        best.iterations, best.message);
  if (!estimate.solves_transport) return outer;
  const std::string inner = last.converged
                                ? fmt::format("inner problem converged (marginal error {:.1e})", last.marginal_error)
                                : fmt::format("inner problem did not converge: {}", last.message);
  return fmt::format("{}; outer {}", inner, outer);
}

Fit::Status status_of(const Evaluation& last, const Estimate& estimate) {
  if (estimate.stopped) return Fit::Status::stopped;
  if (estimate.solves_transport && !last.converged) return Fit::Status::inner_not_converged;
  return estimate.candidates.front().converged ? Fit::Status::converged : Fit::Status::outer_not_converged;
}

/// Share of the responses' mass that the plan keeps on rows of their own, at most all of each row.
double matched_share(const Problem& problem, const SoftLinks& links) {
  return links.response_mass.cwiseMin(1.0).dot(problem.response_weights);
}

/// An answer whose compressed plan is not what was asked for did not converge.
void require_accuracy(Fit& made, double accuracy) {
  // The marginal error is a sum over rows, the compression error that of one row relative to its weight.
  if (made.compression_error <= accuracy + made.marginal_error * double(made.responses)) return;
  made.status = Fit::Status::inner_not_converged;
  made.message += fmt::format("; the compressed plan misses its row sums by {:.1e}, asked for were {:.1e}",
                              made.compression_error, accuracy);
}

/// A margin around one solution of several would be taken for one around the truth.
void withhold_errors(Fit& made) {
  made.covariance.resize(0, 0);
  made.margins.resize(0, 0);
  made.std_error_note = "none: other coefficients explain the data as well, so these have no margin of error";
}

/// The answer seen by the transport problem: whatever the method, its links can then be compared and matched alike.
Fit assemble(const MethodInput& input, Estimate estimate) {
  Fit made;
  FitOptions options = input.options;
  if (estimate.epsilon > 0) options.epsilon = {.value = estimate.epsilon, .relative = false};
  EvaluatorOptions shared = evaluator_options(options, input.problem);
  shared.team = options.team;
  Evaluator evaluator(input.problem, input.bound, shared);
  const Vector& w = estimate.candidates.front().parameters;
  const Evaluation last = evaluator.evaluate(w);
  made.status = status_of(last, estimate);
  made.message = in_words(last, estimate);
  made.backend = evaluator.backend();
  made.names = input.bound.parameter_names();
  made.parameters = w;
  if (!estimate.errors_are_too_small) {
    made.covariance = std::move(estimate.covariance);
    made.margins = std::move(estimate.margins);
  }
  made.std_error_note = std::move(estimate.std_error_note);
  made.objective = estimate.solves_transport ? last.objective : estimate.candidates.front().objective;
  made.objective_name = estimate.objective_name;
  made.transport_cost = last.transport_cost;
  made.epsilon = evaluator.epsilon();
  const double largest_cost = estimate.largest_cost > 0 ? estimate.largest_cost : evaluator.largest_cost(w);
  made.epsilon_relative = largest_cost > 0 ? made.epsilon / largest_cost : 0;
  made.marginal_error = last.marginal_error;
  made.responses = input.problem.responses();
  made.features = input.problem.features();
  // A method that links rows measures the noise; else there is only the plan's own residual, which is smaller than the
  // noise because the plan is free to pair rows that fit.
  const double plan_residual = last.transport_cost / double(input.problem.responses() * input.problem.outputs());
  made.noise_sd = estimate.noise_sd > 0 ? estimate.noise_sd : std::sqrt(std::max(0.0, plan_residual));
  const SoftLinks links = evaluator.links(w);
  made.matched_share = matched_share(input.problem, links);
  made.compression_error = links.measured_error;
  if (estimate.solves_transport) require_accuracy(made, options.accuracy);
  made.identifiable = qualified(std::move(estimate.identifiable), input.problem, input.bound);
  if (made.identifiable.verdict == Verdict::not_identifiable) withhold_errors(made);
  made.choice = std::move(estimate.choice);
  made.chosen = estimate.chosen.value_or(input.options.method);
  made.link_probabilities = std::move(estimate.link_probabilities);
  made.iterations = estimate.candidates.front().iterations;
  made.evaluations = estimate.evaluations;
  made.candidates = std::move(estimate.candidates);
  made.trace = std::move(estimate.trace);
  return made;
}

/// The options that methods see: with the work that is finished, and in a team only what the leader was told to say.
FitOptions with_finished_work(const Problem& problem, const Model& bound, const FitOptions& options) {
  FitOptions made = options;
  const bool leads = options.team == nullptr || options.team->leads();
  if (several(options.team)) {
    made.progress = {};
    if (leads && options.progress)
      made.progress = [say = options.progress](double done, double total) {
        (void)say(done, total);
        return true;
      };
  }
  if (options.checkpoint.empty() && !several(options.team)) return made;
  made.finished = std::make_shared<FinishedWork>(leads ? options.checkpoint : "", key_of_fit(problem, bound, options));
  if (several(options.team)) made.finished->exchange(*options.team);  // what the leader's file holds
  return made;
}

}  // namespace

Vector Fit::std_errors() const { return covariance.diagonal().cwiseSqrt(); }

Matrix Fit::intervals() const {
  Matrix reach = Matrix::Constant(parameters.size(), 2, std::numeric_limits<double>::quiet_NaN());
  if (margins.rows() == parameters.size()) {
    reach = margins;
  } else if (covariance.rows() == parameters.size()) {
    reach = normal_quantile * std_errors().replicate(1, 2);
  }
  Matrix ends(parameters.size(), 2);
  ends << parameters - reach.col(0), parameters + reach.col(1);
  return ends;
}

Fit fit(const Problem& given, const Model& model, const FitOptions& options) {
  const auto begin = Clock::now();
  validate(options);
  const ThreadLimit limit(options.threads);
  const Problem problem = completed(given);
  const auto bound = model.bound_to(problem);
  require_estimable(problem, *bound);
  require_prior_is_read(problem, info_of(options.method));

  const double moved_before = options.team == nullptr ? 0 : options.team->bytes_moved();
  const FitOptions kept = with_finished_work(problem, *bound, options);
  const MethodInput input{problem, *bound, kept};
  Fit best = assemble(input, entry_of(options.method).estimate(input));
  best.method = options.method;
  best.model = model.name();
  best.objective_kind = options.objective;
  best.seed = options.seed;
  if (several(options.team)) {
    best.processes = options.team->size();
    best.bytes_per_evaluation = (options.team->bytes_moved() - moved_before) / std::max(1, best.evaluations);
  }
  best.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  best.peak_memory_mb = peak_memory_mb();
  return best;
}

}  // namespace unshuffle
