#include "unshuffle/fit/fit.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <numeric>

#include "fit/descent.hpp"
#include "fit/starts.hpp"
#include "unshuffle/error.hpp"

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

void require_enough_rows(const Problem& problem, const Model& bound) {
  const Index rows = std::min(problem.responses(), problem.features());
  if (rows * problem.outputs() < bound.parameters()) {
    throw BadData(fmt::format("{} rows cannot determine {} parameters", rows, bound.parameters()));
  }
}

void require_hessian(const FitOptions& options, const Problem& problem, const Model& bound) {
  const bool scalar = problem.outputs() == 1 && bound.additive() != nullptr && options.backend != Backend::dense;
  if (options.optimizer == Optimizer::trust_region && !scalar) {
    throw InvalidInput("optimizer = trust_region needs the sorted backend: one output and an additive model");
  }
}

/// The options with ε in the unit of the cost. Relative means relative to the largest cost at the first start, so that
/// all starts minimise the same function.
FitOptions with_absolute_epsilon(FitOptions options, const Problem& problem, const Model& bound, const Start& first,
                                 double& largest_cost) {
  const Evaluator probe(problem, bound, evaluator_options(options, problem));
  largest_cost = probe.largest_cost(first.parameters);
  if (!options.epsilon.relative) return options;
  const double unit = largest_cost > 0 ? largest_cost : 1.0;
  options.epsilon = {.value = options.epsilon.value * unit, .relative = false};
  options.epsilon_start *= unit;
  return options;
}

std::vector<Descended> descend_from_all(const Problem& problem, const Model& bound, const FitOptions& options,
                                        const std::vector<Start>& starts) {
  const auto count = static_cast<int>(starts.size());
  const int threads = omp_get_max_threads();
  std::vector<Descended> results(starts.size());
  std::vector<std::exception_ptr> failures(starts.size());
  std::atomic<bool> stop{false};
  std::atomic<long> ticks{0};
  const double total = double(count) * iteration_limit(options);
  const Tick tick = [&] {
    const auto done = static_cast<double>(++ticks);
    if (omp_get_thread_num() == 0 && options.progress && !options.progress(std::min(done, total), total)) stop = true;
    return !stop;
  };
  // With several starts, each runs on one thread: parallel loops inside a parallel loop stay serial.
#pragma omp parallel for schedule(dynamic, 1) num_threads(std::min(threads, count)) if (count > 1)
  for (int k = 0; k < count; ++k) {
    try {
      if (!stop || k == 0) results[std::size_t(k)] = descend(problem, bound, options, starts[std::size_t(k)], k, tick);
    } catch (...) {
      failures[std::size_t(k)] = std::current_exception();
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  if (options.progress) (void)options.progress(total, total);
  return results;
}

/// Indices of the starts, best first. A start that knows its own quality comes before those that do not: far from it
/// the transport cost has lower but meaningless minima.
std::vector<std::size_t> ranked(const std::vector<Descended>& results, const std::vector<Start>& starts) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (results[k].candidate.parameters.size() > 0) order.push_back(k);
  }
  const auto key = [&](std::size_t k) {
    const double objective = results[k].candidate.objective;
    return std::pair(starts[k].covariance.size() == 0, std::isnan(objective) ? HUGE_VAL : objective);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::string in_words(const Evaluation& last, const Candidate& best) {
  const std::string inner = last.converged
                                ? fmt::format("inner problem converged (marginal error {:.1e})", last.marginal_error)
                                : fmt::format("inner problem did not converge: {}", last.message);
  return fmt::format("{}; outer {} after {} iterations: {}", inner, best.converged ? "converged" : "did not converge",
                     best.iterations, best.message);
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Share of the responses' mass that the plan keeps on rows of their own, at most all of each row.
double matched_share(const Problem& problem, const SoftLinks& links) {
  return links.response_mass.cwiseMin(1.0).dot(problem.response_weights);
}

Fit assemble(const Problem& problem, const Model& bound, const FitOptions& options, const Start& start,
             const Descended& best) {
  Fit made;
  Evaluator evaluator(problem, bound, evaluator_options(options, problem));
  const Evaluation last = evaluator.evaluate(best.candidate.parameters);
  made.status = !last.converged             ? Fit::Status::inner_not_converged
                : !best.candidate.converged ? Fit::Status::outer_not_converged
                                            : Fit::Status::converged;
  made.message = in_words(last, best.candidate);
  made.backend = evaluator.backend();
  made.names = bound.parameter_names();
  made.parameters = best.candidate.parameters;
  made.std_error_note = "not estimated: ordinary ones would ignore that the links are unknown";
  made.objective = last.objective;
  made.transport_cost = last.transport_cost;
  made.epsilon = evaluator.epsilon();
  made.marginal_error = last.marginal_error;
  // A consensus of linked rows measures the noise; without one there is only the plan's own residual, which is smaller
  // than the noise because the plan is free to pair rows that fit.
  const double plan_residual = last.transport_cost / double(problem.responses() * problem.outputs());
  made.noise_sd = start.noise_sd > 0 ? start.noise_sd : std::sqrt(std::max(0.0, plan_residual));
  const SoftLinks links = evaluator.links(made.parameters);
  made.matched_share = matched_share(problem, links);
  made.compression_error = links.measured_error;
  // The marginal error is a sum over rows, the compression error that of one row relative to its weight.
  const double accepted = options.accuracy + last.marginal_error * double(problem.responses());
  if (made.compression_error > accepted) {
    made.status = Fit::Status::inner_not_converged;
    made.message += fmt::format("; the compressed plan misses its row sums by {:.1e}, asked for were {:.1e}",
                                made.compression_error, options.accuracy);
  }
  made.iterations = best.candidate.iterations;
  return made;
}

}  // namespace

Fit fit(const Problem& given, const Model& model, const FitOptions& options) {
  const auto begin = Clock::now();
  validate(options);
  const ThreadLimit limit(options.threads);
  const Problem problem = completed(given);
  const auto bound = model.bound_to(problem);
  require_enough_rows(problem, *bound);
  require_hessian(options, problem, *bound);

  const std::vector<Start> starts = make_starts(problem, *bound, options);
  double largest_cost = 0;
  const FitOptions resolved = with_absolute_epsilon(options, problem, *bound, starts.front(), largest_cost);
  std::vector<Descended> results = descend_from_all(problem, *bound, resolved, starts);
  const std::vector<std::size_t> order = ranked(results, starts);

  Fit best = assemble(problem, *bound, resolved, starts[order.front()], results[order.front()]);
  best.method = options.method;
  best.model = model.name();
  best.objective_kind = options.objective;
  best.epsilon_relative = largest_cost > 0 ? best.epsilon / largest_cost : 0;
  best.seed = options.seed;
  best.responses = problem.responses();
  best.features = problem.features();
  for (const std::size_t k : order) best.candidates.push_back(std::move(results[k].candidate));
  for (Descended& result : results) {
    best.evaluations += result.evaluations;
    best.trace.insert(best.trace.end(), result.trace.begin(), result.trace.end());
  }
  const auto cut_short = [](const Descended& result) { return result.stopped || result.evaluations == 0; };
  if (std::any_of(results.begin(), results.end(), cut_short)) best.status = Fit::Status::stopped;
  best.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  best.peak_memory_mb = peak_memory_mb();
  return best;
}

}  // namespace unshuffle
