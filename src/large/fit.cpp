#include "unshuffle/large/fit.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/balanced_inverse.hpp"
#include "core/peak_memory.hpp"
#include "core/special.hpp"
#include "estimators/descent.hpp"
#include "estimators/estimate.hpp"
#include "large/objective.hpp"
#include "likelihood/kernel_density.hpp"
#include "likelihood/mixture.hpp"
#include "unshuffle/core/agreement.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/model/registry.hpp"

namespace unshuffle::large {
namespace {

using Clock = std::chrono::steady_clock;

/// The options of the descent, or of the likelihood over all links.
Robot robot_of(const Estimator& estimator) {
  if (const auto* robot = std::get_if<Robot>(&estimator)) return *robot;
  if (const auto* robust = std::get_if<RobotRobust>(&estimator)) return robust->robot;
  const auto* automatic = std::get_if<Auto>(&estimator);
  return {.precision = precision_of(estimator), .limit = automatic != nullptr ? automatic->limit : IterationLimit{}};
}

void require_supported(const LargeTables& tables, const Estimator& estimator) {
  if (!traits_of(estimator).in_pieces)
    throw InvalidInput(fmt::format("tables in pieces can be fitted by {}; not by {}",
                                   estimators_with(&EstimatorTraits::in_pieces), name_of(estimator)));
  if (const auto* robust = std::get_if<RobotRobust>(&estimator);
      robust != nullptr && (robust->rho1 >= 0 || robust->rho2 >= 0))
    throw InvalidInput(fmt::format("{} and {} belong to a number of rows; for tables in pieces give {}", option("rho1"),
                                   option("rho2"), option("unmatched")));
  const Optimizer optimizer = robot_of(estimator).descent.optimizer;
  if (optimizer == Optimizer::momentum || optimizer == Optimizer::adam)
    throw InvalidInput("tables in pieces are descended on by trust-region or lbfgs");
  if (bootstrap_of(estimator) > 0) throw InvalidInput("tables in pieces have no bootstrap");
  if (!tables.sample.known.empty()) throw InvalidInput("tables in pieces can have no known pairs");
  if (tables.sample.has_prior()) throw InvalidInput("tables in pieces can have no prior weights of pairs");
}

/// Turns the fit of the sample, which all processes compute together, into a fit of all rows, led by one process.
class FitOfAll {
 public:
  FitOfAll(const LargeTables& tables, const Model& model, std::shared_ptr<const Model> bound,
           const Estimator& estimator, const Execution& execution, SharedPasses& passes)
      : tables_(tables),
        model_(model),
        rows_{&tables.responses, &tables.features, tables.response_rows, tables.feature_rows},
        sample_(completed(tables.sample)),
        shared_bound_(std::move(bound)),
        bound_(*shared_bound_),
        estimator_(estimator),
        robot_(robot_of(estimator)),
        likelihood_(traits_of(estimator).likelihood),
        execution_(execution),
        passes_(passes) {}

  // The sample locates the valley and, for the likelihood, the noise; the descent on all rows finds its floor. A
  // consensus of rows in order comes with its own uncertainty, within which the descent stays; it needs no fit first.
  void fit_sample(Team& team) {
    if (!likelihood_ && sample_.order_is_a_hint()) {
      from_ = make_starts(sample_, bound_, robot_.starts, execution_.seed).front();
      if (from_.covariance.size() > 0) {
        fit_.objective.kind = robot_.objective;
        fit_.plan.backend = Backend::sorted;
        fit_.names = bound_.parameter_names();
        fit_.course.seed = execution_.seed;
        fit_.std_error_note = Estimate{}.std_error_note;
        chosen_ = estimator_;
        return;
      }
    }
    Execution on_sample = execution_;
    on_sample.progress = {};
    on_sample.team = &team;
    const Fitted fitted = fit(tables_.sample, model_, estimator_, on_sample);
    fit_ = fitted.result();
    chosen_ = fitted.context().chosen;
    from_ = {"sample", fit_.parameters, {}, 0};
  }

  Fitted run() {
    // The row order gives the links: the sample's fit found a probability for each.
    if (fit_.link_probabilities.size() > 0)
      all_rows_in_order();
    else if (std::holds_alternative<Adjusted>(chosen_))
      keep_sample();
    else
      all_links();
    fit_.rows = {static_cast<Index>(tables_.response_rows), static_cast<Index>(tables_.feature_rows)};
    const std::vector<std::string> names = bound_.parameter_names();
    FitContext context{.estimator = estimator_,
                       .chosen = chosen_,
                       .model = model_.name(),
                       .columns = tables_.columns,
                       .intercept = std::any_of(names.begin(), names.end(), is_intercept),
                       .model_state = model_state(bound_)};
    return {std::move(fit_), std::move(context), shared_bound_};
  }

 private:
  /// Passes over pieces support exact and relaxed sums, not rows without a partner.
  [[nodiscard]] EvaluatorOptions plan(Objective kind) const {
    EvaluatorOptions made = plan_options(estimator_, tables_.response_rows, tables_.feature_rows);
    if (likelihood_) made.response_side = made.feature_side = transport::Exact{};
    made.objective = kind;
    return made;
  }

  [[nodiscard]] LargeObjective objective(Objective kind) const {
    const EvaluatorOptions made = plan(kind);
    return {passes_, rows_, sample_.x.cols() > 0, made};
  }

  void all_links() {
    DescentTask task{sample_,
                     bound_,
                     plan(likelihood_ ? Objective::entropic : robot_.objective),
                     robot_.descent,
                     robot_.limit.max_iterations,
                     execution_.seed};
    LargeObjective all = objective(task.evaluator.objective);
    const double largest_cost = all.largest_cost(from_.parameters);
    Epsilon& epsilon = task.evaluator.epsilon;
    if (likelihood_) {
      epsilon = {.value = fit_.plan.epsilon, .relative = false};
    } else if (epsilon.relative) {
      epsilon = {.value = epsilon.value * largest_cost, .relative = false};
      task.options.epsilon_start *= largest_cost;
    }
    const double share = static_cast<double>(sample_.responses()) / tables_.response_rows;
    Evaluation last;
    task.objective = [&](const VectorRef& w, double at_epsilon, bool with_hessian) {
      last = all.evaluate(w, at_epsilon, with_hessian);
      Evaluation scaled = last;  // the descent uses the scales of the sample
      scaled.objective *= share;
      scaled.gradient *= share;
      scaled.hessian *= share;
      return scaled;
    };
    int done = 0;
    const int most = iteration_limit(task);
    const Tick tick = [&] { return !execution_.progress || execution_.progress(++done, most); };
    const Descended found = descend(task, from_, 0, tick);
    if (execution_.progress) (void)execution_.progress(most, most);
    finish(all, found, epsilon.value, largest_cost);
    if (likelihood_ && fit_.covariance.size() > 0) {
      fit_.covariance *= share;
      fit_.margins *= std::sqrt(share);
      fit_.std_error_note = fmt::format("those of {} rows, scaled to {:.0f}; {}", sample_.responses(),
                                        tables_.response_rows, fit_.std_error_note);
    }
    fit_.course.evaluations = found.evaluations;
    fit_.course.trace = found.trace;
    fit_.course.candidates.insert(fit_.course.candidates.begin(), found.candidate);
    fit_.course.candidates.front().objective /= share;
  }

  void finish(LargeObjective& all, const Descended& found, double epsilon, double largest_cost) {
    const Candidate& best = found.candidate;
    const Evaluation last = all.evaluate(best.parameters, epsilon, false);
    fit_.parameters = best.parameters;
    if (!likelihood_)
      fit_.noise_sd = found.noise_sd > 0 ? found.noise_sd : std::sqrt(last.transport_cost / rows_.response_rows);
    fit_.status = found.stopped     ? Status::stopped
                  : !last.converged ? Status::inner_not_converged
                  : !best.converged ? Status::outer_not_converged
                                    : Status::converged;
    fit_.message = fmt::format("all rows, from a sample of {}: inner problem {}; outer {} after {} iterations: {}",
                               sample_.responses(),
                               last.converged ? fmt::format("converged (marginal error {:.1e})", last.marginal_error)
                                              : "did not converge: " + last.message,
                               best.converged ? "converged" : "did not converge", best.iterations, best.message);
    fit_.course.iterations = best.iterations;
    fit_.objective.value = last.objective;
    fit_.objective.name = likelihood_ || robot_.objective == Objective::entropic ? "entropic" : "transport";
    set_transport(all, last, epsilon, largest_cost);
    if (fit_.plan.compression_error > robot_.precision.accuracy + last.marginal_error * rows_.response_rows) {
      fit_.status = Status::inner_not_converged;
      fit_.message += fmt::format("; the compressed plan misses its row sums by {:.1e}, asked for were {:.1e}",
                                  fit_.plan.compression_error, robot_.precision.accuracy);
    }
  }

  void set_transport(LargeObjective& all, const Evaluation& last, double epsilon, double largest_cost) {
    fit_.plan.transport_cost = last.transport_cost;
    fit_.plan.epsilon = epsilon;
    fit_.plan.epsilon_relative = largest_cost > 0 ? epsilon / largest_cost : 0;
    fit_.plan.marginal_error = last.marginal_error;
    fit_.plan.matched_share = all.matched_share();
    fit_.plan.compression_error = all.measured_error();
  }

  /// Passes over all rows assume normal noise, which leads away from the sample's answer if that did without.
  [[nodiscard]] bool leads_elsewhere(const Vector& w, const Matrix& covariance) const {
    constexpr double surprising = 1e-3;
    if (fit_.covariance.size() == 0) return false;
    const Vector apart = w - fit_.parameters;
    const double distance = apart.dot(balanced_inverse(fit_.covariance + covariance) * apart);
    return chi_squared_tail(std::max(0.0, distance), double(w.size())) < surprising;
  }

  /// An answer adjusted for wrong links, or with an estimated noise law, is not a sum over rows.
  void keep_sample() {
    fit_.message =
        fmt::format("a sample of {} rows of {:.0f}: {}", sample_.responses(), tables_.response_rows, fit_.message);
  }

  [[nodiscard]] TabulatedDensity wrong_links() const {
    Matrix t = sample_.y;
    if (sample_.x.cols() > 0)
      t -= bound_.additive()->part(Side::response, bound_.basis(Side::response, sample_.x), fit_.parameters);
    return KernelDensity(t, execution_.seed).tabulated();
  }

  [[nodiscard]] MixtureOptions mixture_limits() const {
    MixtureOptions limits;
    limits.seed = execution_.seed;
    limits.known_noise_variance = noise_sd_of(estimator_) * noise_sd_of(estimator_);
    const Links in_order = links_in_order(sample_);
    const CandidateLinks links{.rows = link(sample_, bound_, in_order.responses, in_order.features)};
    bound_mismatch_rate(bound_, links, least_squares(bound_, links.rows, fit_.parameters), limits);
    return limits;
  }

  struct Climbed {
    Vector w;
    LimitedBelief belief;
    MixtureSums sums{};
    int steps = 0;
    bool converged = false, stopped = false;
  };

  // EM as in likelihood/mixture.cpp, from the sample's answer, each step a pass over all rows.
  [[nodiscard]] Climbed climb(const TabulatedDensity& other, const BeliefLimits& limits, int steps_before = 0) {
    constexpr double tolerance = 1e-3;  // nats, over all rows
    Climbed at{.w = fit_.parameters,
               .belief = limited({fit_.noise_sd * fit_.noise_sd, 1 - fit_.link_probabilities.mean()}, limits)};
    at.sums = passes_.mixture_sums(at.w, {at.belief, other});
    for (at.steps = steps_before; at.steps < steps_before + most_steps && !at.converged && !at.stopped; ++at.steps) {
      const Vector step = balanced_inverse(at.sums.matrix) * at.sums.right;
      at.w += step;
      // Σ π(r - J step)², for a model linear in w.
      const double squares = at.sums.squares - 2 * step.dot(at.sums.right) + step.dot(at.sums.matrix * step);
      at.belief = maximised(
          {.numbers = at.sums.links, .squares = squares, .open = at.sums.open, .open_right = at.sums.links}, limits);
      MixtureSums next = passes_.mixture_sums(at.w, {at.belief, other});
      at.converged = std::abs(next.log_likelihood - at.sums.log_likelihood) <= tolerance;
      at.sums = std::move(next);
      at.stopped = execution_.progress && !execution_.progress(at.steps + 1, 2 * most_steps);
    }
    return at;
  }

  void all_rows_in_order() {
    if (!bound_.linear_in_parameters())
      throw InvalidInput("rows in order of tables in pieces need a model that is linear in its coefficients");
    if (!tables_.cut_alike)
      throw BadData("rows in order of tables in pieces need as many rows in every file of either side");
    const TabulatedDensity other = wrong_links();
    const MixtureOptions bounded = mixture_limits();
    BeliefLimits limits{bounded.known_noise_variance, least_noise_variance(sample_.y)};
    // If the noise of the sample was bounded because of repeated responses, it is bounded for all rows too.
    if (const double kept = resolution(sample_.y, execution_.seed), of_sample = fit_.noise_sd * fit_.noise_sd;
        std::abs(of_sample - kept) <= 1e-9 * kept)
      limits.least_noise_variance = kept;
    Climbed found = climb(other, limits);
    // As in memory: intermediate steps may exceed the limit, so it applies only at convergence.
    if (!found.stopped && rate_is_implausible(found.belief.mismatch_rate, bounded)) {
      limits.largest_rate = bounded.largest_rate;
      found = climb(other, limits, found.steps);
    }
    if (execution_.progress) (void)execution_.progress(2 * most_steps, 2 * most_steps);
    const auto& [w, belief, sums, steps, converged, stopped] = found;
    const MixtureCovariance covariance = mixture_covariance(sums, belief, bounded.rate_variance);
    if (!stopped && leads_elsewhere(w, covariance.sandwich)) return keep_sample();
    fit_.parameters = w;
    if (fit_.identifiable.verdict != Verdict::not_identifiable) fit_.covariance = covariance.sandwich;
    fit_.noise_sd = std::sqrt(belief.noise_variance);
    fit_.link_probabilities.resize(0);  // they were the sample's
    fit_.status = stopped ? Status::stopped : converged ? Status::converged : Status::outer_not_converged;
    fit_.message = fmt::format(
        "all rows, from a sample of {}: {} after {} iterations: {:.1f} % of the links in the order "
        "given are wrong",
        sample_.responses(), converged ? "converged" : "did not converge", steps, 100 * belief.mismatch_rate);
    fit_.course.iterations = fit_.course.evaluations = steps;
    fit_.objective.value = -sums.log_likelihood;
    LargeObjective all = objective(Objective::transport);
    const double largest_cost = all.largest_cost(w);
    const double epsilon = std::max(2 * belief.noise_variance, least_epsilon * largest_cost);
    set_transport(all, all.evaluate(w, epsilon, false), epsilon, largest_cost);
    fit_.course.candidates = {{"sample", w, fit_.objective.value, converged, steps, fit_.message}};
  }

  static constexpr int most_steps = 200;          // of EM
  static constexpr double least_epsilon = 1e-10;  // of the largest cost; cells as narrow as less asks for are too many

  const LargeTables& tables_;
  const Model& model_;
  LargeRows rows_;
  Problem sample_;
  std::shared_ptr<const Model> shared_bound_;
  const Model& bound_;
  const Estimator& estimator_;
  Robot robot_;
  bool likelihood_;
  const Execution& execution_;
  SharedPasses& passes_;
  Start from_;
  Estimator chosen_;
  Result fit_;
};

}  // namespace

std::optional<Fitted> fit_large(const LargeTables& tables, const Model& model, const Estimator& estimator,
                                const Execution& execution, Team& team) {
  const auto begin = Clock::now();
  validate(estimator);
  require_supported(tables, estimator);
  require_agreement(
      team, {{"method", all_as_text(estimator)}, {"model", model.name()}, {"seed", std::to_string(execution.seed)}});
  const std::shared_ptr<const Model> bound = model.bound_to(completed(tables.sample));
  const LargeRows rows{&tables.responses, &tables.features, tables.response_rows, tables.feature_rows};
  const Passes own(rows, *bound);
  SharedPasses passes(own, team);
  FitOfAll work(tables, model, bound, estimator, execution, passes);
  work.fit_sample(team);
  if (!team.leads()) {
    passes.serve();
    return std::nullopt;
  }
  const double before = team.bytes_moved();
  Fitted made = work.run();
  passes.finish();
  Course course = made.result().course;
  course.processes = team.size();
  course.passes = passes.passes();
  course.bytes_per_evaluation = (team.bytes_moved() - before) / std::max(1, course.evaluations);
  course.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  course.peak_memory_mb = peak_memory_mb();
  made.set_course(std::move(course));
  return made;
}

}  // namespace unshuffle::large
