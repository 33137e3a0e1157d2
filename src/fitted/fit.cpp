// fit(): checks, the estimator, and its answer as a Fitted.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/peak_memory.hpp"
#include "core/threads.hpp"
#include "estimators/estimate.hpp"
#include "estimators/family_regression.hpp"
#include "objective/backend.hpp"
#include "objective/transport_form.hpp"
#include "unshuffle/core/agreement.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "verdict/identifiability.hpp"
#include "verdict/recurrence.hpp"

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

/// Rejects soft evidence for estimators that would ignore it.
void require_prior_is_read(const Problem& problem, const EstimatorTraits& traits) {
  if (!problem.has_prior() || traits.prior) return;
  throw InvalidInput(fmt::format("{} cannot use prior weights of pairs or soft groups; methods that can: {}",
                                 traits.name, estimators_with(&EstimatorTraits::prior)));
}

/// Coefficients to begin from are those of this model, whether or not the way that is taken begins from any.
void require_start_fits(const Estimator& estimator, const Model& bound) {
  const StartChoice* start = std::visit(
      [](const auto& one) -> const StartChoice* {
        if constexpr (requires { one.starts.start; }) return &one.starts.start;
        if constexpr (requires { one.robot.starts.start; }) return &one.robot.starts.start;
        return nullptr;
      },
      estimator);
  if (start == nullptr || start->kind != StartKind::user || start->parameters.size() == bound.parameters()) return;
  throw InvalidInput(fmt::format("{} has {} values; {} were expected: {}", option("start"), start->parameters.size(),
                                 bound.parameters(), fmt::join(bound.parameter_names(), ", ")));
}

/// The first sentence is about the transport problem at the answer, which only some estimators minimise themselves.
std::string in_words(const Evaluation& last, const Estimate& estimate) {
  const Candidate& best = estimate.candidates.front();
  std::string outer = fmt::format("{} after {} iterations: {}", best.converged ? "converged" : "did not converge",
                                  best.iterations, best.message);
  if (!estimate.solves_transport) return outer;
  const std::string inner = last.converged
                                ? fmt::format("inner problem converged (marginal error {:.1e})", last.marginal_error)
                                : fmt::format("inner problem did not converge: {}", last.message);
  return fmt::format("{}; outer {}", inner, outer);
}

Status status_of(const Evaluation& last, const Estimate& estimate) {
  if (estimate.stopped) return Status::stopped;
  if (estimate.solves_transport && !last.converged) return Status::inner_not_converged;
  return estimate.candidates.front().converged ? Status::converged : Status::outer_not_converged;
}

/// Share of the response mass that the plan keeps on its own rows, at most all of each row.
double matched_share(const Problem& problem, const SoftLinks& links) {
  return links.response_mass.cwiseMin(1.0).dot(problem.response_weights);
}

/// An answer whose compressed plan misses the requested accuracy did not converge.
void require_accuracy(Result& result, double accuracy) {
  // The marginal error is a sum over rows, the compression error that of one row relative to its weight.
  const PlanFacts& plan = result.plan;
  if (plan.compression_error <= accuracy + plan.marginal_error * double(result.rows.responses)) return;
  result.status = Status::inner_not_converged;
  result.message += fmt::format("; the compressed plan misses its row sums by {:.1e}, asked for were {:.1e}",
                                plan.compression_error, accuracy);
}

/// Margins around one solution of several would be mistaken for margins around the truth.
void withhold_errors(Result& result) {
  result.covariance.resize(0, 0);
  result.margins.resize(0, 0);
  result.std_error_note = "none: other coefficients explain the data as well, so these have no margin of error";
}

/// Of the starts that led to a finite objective.
std::vector<Ending> endings_of(const std::vector<Candidate>& candidates) {
  std::vector<Ending> endings;
  for (const Candidate& one : candidates) {
    if (one.parameters.allFinite() && std::isfinite(one.objective)) endings.push_back({one.parameters, one.objective});
  }
  return endings;
}

/// The plan at the answer, so that links of any estimator can be compared and matched in the same way.
Evaluation evaluate_answer(const Input& input, const EvaluatorOptions& options, const Estimate& estimate,
                           PlanFacts& plan) {
  const TransportForm form = transport_form(input.problem, input.bound, estimate.law);
  Evaluator evaluator(*form.problem, *form.model, options);
  const Vector& w = estimate.candidates.front().parameters;
  Evaluation last = evaluator.evaluate(w);
  plan.backend = evaluator.backend();
  plan.transport_cost = last.transport_cost;
  plan.epsilon = evaluator.epsilon();
  const double largest_cost = estimate.largest_cost > 0 ? estimate.largest_cost : evaluator.largest_cost(w);
  plan.epsilon_relative = largest_cost > 0 ? plan.epsilon / largest_cost : 0;
  plan.marginal_error = last.marginal_error;
  const SoftLinks links = evaluator.links(w);
  plan.matched_share = matched_share(input.problem, links);
  plan.compression_error = links.measured_error;
  return last;
}

EvaluatorOptions plan_at_answer(const Input& input, const Estimator& asked, const Estimate& estimate) {
  EvaluatorOptions plan = plan_options(estimate.chosen.value_or(asked), double(input.problem.responses()),
                                       double(input.problem.features()));
  if (estimate.epsilon > 0) plan.epsilon = {.value = estimate.epsilon, .relative = false};
  plan.team = input.run.team;
  return plan;
}

Result assemble(const Input& input, const Estimator& asked, Estimate& estimate) {
  const EvaluatorOptions plan = plan_at_answer(input, asked, estimate);
  Result result;
  const Evaluation last = evaluate_answer(input, plan, estimate, result.plan);
  const Candidate& best = estimate.candidates.front();
  result.status = status_of(last, estimate);
  result.message = in_words(last, estimate);
  result.names = input.bound.parameter_names();
  result.parameters = best.parameters;
  if (!estimate.errors_are_too_small) {
    result.covariance = std::move(estimate.covariance);
    result.margins = std::move(estimate.margins);
  }
  result.std_error_note = std::move(estimate.std_error_note);
  result.objective = {estimate.solves_transport ? last.objective : best.objective, estimate.objective_name,
                      plan.objective};
  result.rows = {input.problem.responses(), input.problem.features()};
  // An estimator that links rows estimates the noise; otherwise there is only the plan's own residual, which is smaller
  // than the noise because the plan is free to pair rows that fit.
  const double plan_residual = last.transport_cost / double(input.problem.responses() * input.problem.outputs());
  result.noise_sd = estimate.noise_sd > 0 ? estimate.noise_sd : std::sqrt(std::max(0.0, plan_residual));
  if (estimate.solves_transport) require_accuracy(result, plan.accuracy);
  Identifiability& said = estimate.identifiable;
  if (said.verdict == Verdict::not_assessed && said.reason.empty())
    said = said_by_starts(endings_of(estimate.candidates), input.problem, input.bound);
  result.identifiable = qualified(std::move(said), input.problem, input.bound);
  if (result.identifiable.verdict == Verdict::not_identifiable) withhold_errors(result);
  result.choice = std::move(estimate.choice);
  result.link_probabilities = std::move(estimate.link_probabilities);
  result.course.iterations = best.iterations;
  result.course.evaluations = estimate.evaluations;
  result.course.trace = std::move(estimate.trace);
  result.course.candidates = std::move(estimate.candidates);
  return result;
}

/// Messages with options spelled for the front end.
void put_in_terms_of(Dialect dialect, Result& result) {
  for (std::string* text : {&result.message, &result.std_error_note, &result.choice, &result.identifiable.reason,
                            &result.identifiable.advice}) {
    *text = in_terms_of(dialect, *text);
  }
  for (Candidate& candidate : result.course.candidates) candidate.message = in_terms_of(dialect, candidate.message);
}

std::string digest(const std::vector<Index>& labels) {
  WorkKey key("labels");
  for (const Index label : labels) key.add(double(label));
  return key.text();
}

std::string digest(const MatrixRef& values) { return WorkKey("values").add(values).text(); }

std::string digest_of_links(const Problem& problem) {
  WorkKey key("links");
  for (const KnownPair& pair : problem.known) key.add(double(pair.response_row)).add(double(pair.feature_row));
  key.add(double(problem.known.size()));
  for (const PairWeight& pair : problem.prior)
    key.add(double(pair.response_row)).add(double(pair.feature_row)).add(pair.weight);
  for (const SoftKey& soft : problem.soft_keys)
    key.add(soft.agreement).add(digest(soft.response_labels)).add(digest(soft.feature_labels));
  return key.text();
}

std::string digest_of_facts(const RowFacts& facts) {
  WorkKey key("facts");
  for (const Vector* values :
       {&facts.response_offset, &facts.feature_offset, &facts.trials, &facts.event, &facts.wrong_rate})
    key.add(double(values->size())).add(digest(*values));
  key.add(digest(facts.mismatch)).add(facts.audit);
  return key.text();
}

/// Everything that has a say in the answer. Threads, progress and the checkpoint itself leave it alone.
std::vector<Common> facts_of(const Problem& problem, const Model& model, const Estimator& estimator,
                             std::uint64_t seed) {
  const auto list = [](const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ",")); };
  return {{"rows of responses", std::to_string(problem.responses())},
          {"rows of features", std::to_string(problem.features())},
          {"response columns", list(problem.y_names)},
          {"columns of x", list(problem.x_names)},
          {"columns of z", list(problem.z_names)},
          {"values of the responses", digest(problem.y)},
          {"values of x", digest(problem.x)},
          {"values of z", digest(problem.z)},
          {"weights of responses", digest(problem.response_weights)},
          {"weights of features", digest(problem.feature_weights)},
          {"groups of responses", digest(problem.response_groups)},
          {"groups of features", digest(problem.feature_groups)},
          {"known or likely links", digest_of_links(problem)},
          {"what is known of rows", digest_of_facts(problem.facts)},
          {"order of rows", std::to_string(int(problem.order))},
          {"model", model.name()},
          {"coefficients", list(model.parameter_names())},
          {"method", all_as_text(estimator)},
          {"seed", std::to_string(seed)}};
}

WorkKey key_of(const std::vector<Common>& facts) {
  WorkKey key("fit");
  for (const Common& fact : facts) key.add(fact.value);
  return key;
}

/// With the finished work; in a team only the leader reports progress.
Run run_of(const Problem& problem, const Model& bound, const Estimator& estimator, const Execution& execution) {
  Run run{execution};
  Team* team = execution.team;
  const bool leads = team == nullptr || team->leads();
  if (several(team)) {
    run.progress = {};
    if (leads && execution.progress)
      run.progress = [say = execution.progress](double done, double total) {
        (void)say(done, total);
        return true;
      };
  }
  if (execution.checkpoint.empty() && !several(team)) return run;
  const std::vector<Common> facts = facts_of(problem, bound, estimator, execution.seed);
  if (several(team)) require_agreement(*team, facts);
  run.finished = std::make_shared<Checkpoint>(leads ? execution.checkpoint : "", key_of(facts));
  if (several(team)) run.finished->exchange(*team);  // what the leader's file holds
  return run;
}

FitContext context_of(const Problem& problem, const Model& model, const Model& bound, const Estimator& estimator,
                      const Estimate& found) {
  const std::vector<std::string> names = bound.parameter_names();
  return {.estimator = estimator,
          .chosen = found.chosen.value_or(estimator),
          .model = model.name(),
          .columns = {.response = problem.y_names, .x = problem.x_names, .z = problem.z_names},
          .intercept = std::any_of(names.begin(), names.end(), is_intercept),
          .model_state = model_state(bound),
          .law = found.law};
}

/// The family that was fitted, and the one that the responses look like.
void name_family(const Problem& problem, const Estimator& estimator, Estimate& found) {
  found.law.family = family_kind_of(found.chosen.value_or(estimator));
  if (found.law.family == FamilyKind::gaussian && problem.outputs() == 1)
    found.law.suggested = family_suggested_by(problem.y.col(0));
}

/// The baseline hazard of Cox regression takes the place of an intercept.
std::shared_ptr<const Model> bound_for(const Problem& problem, const Model& model, const Estimator& estimator) {
  const bool linear = model.name() == "linear" && family_kind_of(estimator) == FamilyKind::cox;
  return linear ? Linear(false).bound_to(problem) : model.bound_to(problem);
}

}  // namespace

void require_feasible(const Problem& problem, const Model& bound, const Estimator& estimator, Team* team) {
  require_estimable(problem, bound);
  const EstimatorTraits& traits = traits_of(estimator);
  const Backend backend = plan_options(estimator, 1, 1).backend;
  const Backend chosen = backend_for(problem, bound, backend);
  const bool needs_all_pairs = chosen == Backend::clouds ? traits.dense_in_space : chosen == Backend::dense;
  if (!traits.dense && !needs_all_pairs) return;
  const int processes = several(team) && traits.shares_plan && !problem.has_prior() ? team->size() : 1;
  require_memory(
      dense_bytes(problem) / processes,
      fmt::format("{} × {} rows on the dense backend", problem.responses(), problem.features()),
      fmt::format("; use groups ({}), or with an additive model, without prior weights, a method that has no "
                  "matrix of all pairs: one response then takes memory linear in the rows, and so do several "
                  "with {}",
                  option("group"), option("backend", "clouds")));
}

Fitted fit(Problem given, const Model& model, const Estimator& estimator, const Execution& execution) {
  const auto begin = Clock::now();
  validate(estimator);
  require_threads(execution.threads);
  const ThreadLimit limit(execution.threads);
  const auto problem = std::make_shared<const Problem>(completed(std::move(given)));
  const std::shared_ptr<const Model> bound = bound_for(*problem, model, estimator);
  require_estimable(*problem, *bound);
  require_prior_is_read(*problem, traits_of(estimator));
  require_start_fits(estimator, *bound);

  const double moved_before = execution.team == nullptr ? 0 : execution.team->bytes_moved();
  const Run run = run_of(*problem, *bound, estimator, execution);
  const Input input{*problem, *bound, run};
  require_family(input, estimator);
  Estimate found = std::visit([&](const auto& one) { return estimate(one, input); }, estimator);
  name_family(*problem, estimator, found);
  FitContext context = context_of(*problem, model, *bound, estimator, found);
  Result result = assemble(input, estimator, found);
  put_in_terms_of(execution.dialect, result);
  Course& course = result.course;
  course.seed = execution.seed;
  if (several(execution.team)) {
    course.processes = execution.team->size();
    course.bytes_per_evaluation = (execution.team->bytes_moved() - moved_before) / std::max(1, course.evaluations);
  }
  course.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  course.peak_memory_mb = peak_memory_mb();
  return {std::move(result), std::move(context), bound, problem};
}

}  // namespace unshuffle
