#include "unshuffle/large/fit.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/balanced_inverse.hpp"
#include "core/peak_memory.hpp"
#include "estimators/descent.hpp"
#include "estimators/method.hpp"
#include "estimators/options.hpp"
#include "large/objective.hpp"
#include "likelihood/kernel_density.hpp"
#include "likelihood/mixture.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/estimators/methods.hpp"

namespace unshuffle::large {
namespace {

using Clock = std::chrono::steady_clock;

void require_supported(const LargeTables& tables, const FitOptions& options) {
  if (!fits_in_pieces(options.method))
    throw InvalidInput(
        fmt::format("tables in pieces can be fitted by auto, mixture, entropic, robot and robot-robust; "
                    "not by {}",
                    name_of(options.method)));
  if (options.rho1 >= 0 || options.rho2 >= 0)
    throw InvalidInput("rho1 and rho2 belong to a number of rows; for tables in pieces give `unmatched`");
  if (options.optimizer == Optimizer::momentum || options.optimizer == Optimizer::adam)
    throw InvalidInput("tables in pieces are descended on by trust_region or lbfgs");
  if (options.bootstrap > 0) throw InvalidInput("tables in pieces have no bootstrap");
  if (!tables.sample.known.empty()) throw InvalidInput("tables in pieces can have no known pairs");
  if (tables.sample.has_prior()) throw InvalidInput("tables in pieces can have no prior weights of pairs");
}

/// The fit of the sample, which all processes find together, made one of all rows by the one that leads.
class FitOfAll {
 public:
  FitOfAll(const LargeTables& tables, const Model& model, const Model& bound, const FitOptions& options,
           SharedPasses& passes)
      : tables_(tables),
        model_(model),
        rows_{&tables.responses, &tables.features, tables.response_rows, tables.feature_rows},
        sample_(completed(tables.sample)),
        bound_(bound),
        options_(options),
        passes_(passes) {}

  // The sample finds the valley and, for the likelihood, the noise; what is left is to go down to its floor. A
  // consensus of rows in order comes with its own uncertainty, within which the descent stays; it needs no fit first.
  void fit_sample(Team& team) {
    if (!likelihood() && options_.row_hint) {
      from_ = make_starts(sample_, bound_, options_).front();
      if (from_.covariance.size() > 0) {
        fit_.method = options_.method;
        fit_.model = model_.name();
        fit_.objective_kind = options_.objective;
        fit_.backend = Backend::sorted;
        fit_.names = bound_.parameter_names();
        fit_.seed = options_.seed;
        fit_.std_error_note = Estimate{}.std_error_note;
        return;
      }
    }
    FitOptions on_sample = options_;
    on_sample.progress = {};
    on_sample.team = &team;
    fit_ = fit(tables_.sample, model_, on_sample);
    from_ = {"sample", fit_.parameters, {}, 0};
  }

  Fit run() {
    // Rows in order tell the links: the sample's fit found a probability for each.
    if (fit_.link_probabilities.size() > 0)
      all_rows_in_order();
    else if (fit_.chosen == Method::adjusted)
      keep_sample();
    else
      all_links();
    fit_.responses = static_cast<Index>(tables_.response_rows);
    fit_.features = static_cast<Index>(tables_.feature_rows);
    return std::move(fit_);
  }

 private:
  [[nodiscard]] bool likelihood() const {
    return options_.method != Method::robot && options_.method != Method::robot_robust;
  }

  [[nodiscard]] LargeObjective objective(Objective kind) const {
    EvaluatorOptions made = evaluator_options(options_, tables_.response_rows, tables_.feature_rows);
    made.objective = kind;
    return {passes_, rows_, sample_.x.cols() > 0, made};
  }

  void all_links() {
    FitOptions options = options_;
    options.objective = likelihood() ? Objective::entropic : options_.objective;
    LargeObjective all = objective(options.objective);
    const double largest_cost = all.largest_cost(from_.parameters);
    if (likelihood()) {
      options.epsilon = {.value = fit_.epsilon, .relative = false};
    } else if (options.epsilon.relative) {
      options.epsilon = {.value = options.epsilon.value * largest_cost, .relative = false};
      options.epsilon_start *= largest_cost;
    }
    const double share = static_cast<double>(sample_.responses()) / tables_.response_rows;
    Evaluation last;
    const OuterObjective per_sample = [&](const VectorRef& w, double epsilon, bool with_hessian) {
      last = all.evaluate(w, epsilon, with_hessian);
      Evaluation scaled = last;  // the descent's scales are those of the sample
      scaled.objective *= share;
      scaled.gradient *= share;
      scaled.hessian *= share;
      return scaled;
    };
    int done = 0;
    const int most = iteration_limit(options);
    const Tick tick = [&] { return !options_.progress || options_.progress(++done, most); };
    const Descended found = descend(sample_, bound_, options, from_, 0, tick, per_sample);
    if (options_.progress) (void)options_.progress(most, most);
    finish(all, found, options.epsilon.value, largest_cost);
    if (likelihood() && fit_.covariance.size() > 0) {
      fit_.covariance *= share;
      fit_.margins *= std::sqrt(share);
      fit_.std_error_note = fmt::format("those of {} rows, scaled to {:.0f}; {}", sample_.responses(),
                                        tables_.response_rows, fit_.std_error_note);
    }
    fit_.evaluations = found.evaluations;
    fit_.trace = found.trace;
    fit_.candidates.insert(fit_.candidates.begin(), found.candidate);
    fit_.candidates.front().objective /= share;
  }

  void finish(LargeObjective& all, const Descended& found, double epsilon, double largest_cost) {
    const Candidate& best = found.candidate;
    const Evaluation last = all.evaluate(best.parameters, epsilon, false);
    fit_.parameters = best.parameters;
    if (!likelihood())
      fit_.noise_sd = found.noise_sd > 0 ? found.noise_sd : std::sqrt(last.transport_cost / rows_.response_rows);
    fit_.status = found.stopped     ? Fit::Status::stopped
                  : !last.converged ? Fit::Status::inner_not_converged
                  : !best.converged ? Fit::Status::outer_not_converged
                                    : Fit::Status::converged;
    fit_.message = fmt::format("all rows, from a sample of {}: inner problem {}; outer {} after {} iterations: {}",
                               sample_.responses(),
                               last.converged ? fmt::format("converged (marginal error {:.1e})", last.marginal_error)
                                              : "did not converge: " + last.message,
                               best.converged ? "converged" : "did not converge", best.iterations, best.message);
    fit_.iterations = best.iterations;
    fit_.objective = last.objective;
    fit_.objective_name = likelihood() || options_.objective == Objective::entropic ? "entropic" : "transport";
    set_transport(all, last, epsilon, largest_cost);
    if (fit_.compression_error > options_.accuracy + last.marginal_error * rows_.response_rows) {
      fit_.status = Fit::Status::inner_not_converged;
      fit_.message += fmt::format("; the compressed plan misses its row sums by {:.1e}, asked for were {:.1e}",
                                  fit_.compression_error, options_.accuracy);
    }
  }

  void set_transport(LargeObjective& all, const Evaluation& last, double epsilon, double largest_cost) {
    fit_.transport_cost = last.transport_cost;
    fit_.epsilon = epsilon;
    fit_.epsilon_relative = largest_cost > 0 ? epsilon / largest_cost : 0;
    fit_.marginal_error = last.marginal_error;
    fit_.matched_share = all.matched_share();
    fit_.compression_error = all.measured_error();
  }

  /// An answer that is adjusted for wrong links is no sum over rows.
  void keep_sample() {
    fit_.message =
        fmt::format("a sample of {} rows of {:.0f}: {}", sample_.responses(), tables_.response_rows, fit_.message);
  }

  [[nodiscard]] TabulatedDensity wrong_links() const {
    Matrix t = sample_.y;
    if (sample_.x.cols() > 0)
      t -= bound_.additive()->part(Side::response, bound_.basis(Side::response, sample_.x), fit_.parameters);
    return KernelDensity(t, options_.seed).tabulated();
  }

  [[nodiscard]] MixtureOptions mixture_limits() const {
    MixtureOptions limits;
    limits.seed = options_.seed;
    limits.known_noise_variance = options_.known_noise_sd * options_.known_noise_sd;
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

  // EM as in inference/mixture.cpp, from the sample's answer, each step a pass over all rows.
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
      at.stopped = options_.progress && !options_.progress(at.steps + 1, 2 * most_steps);
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
    Climbed found = climb(other, limits);
    // As in memory: what steps say on the way may be anything, so the limit is for where they end.
    if (!found.stopped && rate_is_implausible(found.belief.mismatch_rate, bounded)) {
      limits.largest_rate = bounded.largest_rate;
      found = climb(other, limits, found.steps);
    }
    if (options_.progress) (void)options_.progress(2 * most_steps, 2 * most_steps);
    const auto& [w, belief, sums, steps, converged, stopped] = found;
    fit_.parameters = w;
    const MixtureCovariance covariance = mixture_covariance(sums, belief, bounded.rate_variance);
    if (fit_.identifiable.verdict != Verdict::not_identifiable) fit_.covariance = covariance.sandwich;
    fit_.noise_sd = std::sqrt(belief.noise_variance);
    fit_.link_probabilities.resize(0);  // they were the sample's
    fit_.status = stopped     ? Fit::Status::stopped
                  : converged ? Fit::Status::converged
                              : Fit::Status::outer_not_converged;
    fit_.message = fmt::format(
        "all rows, from a sample of {}: {} after {} iterations: {:.1f} % of the links in the order "
        "given are wrong",
        sample_.responses(), converged ? "converged" : "did not converge", steps, 100 * belief.mismatch_rate);
    fit_.iterations = fit_.evaluations = steps;
    fit_.objective = -sums.log_likelihood;
    LargeObjective all = objective(Objective::transport);
    const double largest_cost = all.largest_cost(w);
    const double epsilon = std::max(2 * belief.noise_variance, least_epsilon * largest_cost);
    set_transport(all, all.evaluate(w, epsilon, false), epsilon, largest_cost);
    fit_.candidates = {{"sample", w, fit_.objective, converged, steps, fit_.message}};
  }

  static constexpr int most_steps = 200;          // of EM
  static constexpr double least_epsilon = 1e-10;  // of the largest cost; cells as narrow as less asks for are too many

  const LargeTables& tables_;
  const Model& model_;
  LargeRows rows_;
  Problem sample_;
  const Model& bound_;
  const FitOptions& options_;
  SharedPasses& passes_;
  Start from_;
  Fit fit_;
};

}  // namespace

bool fits_in_pieces(Method method) {
  return method == Method::robot || method == Method::robot_robust || method == Method::entropic ||
         method == Method::mixture || method == Method::automatic;
}

Fit fit_large(const LargeTables& tables, const Model& model, const FitOptions& options, Team& team) {
  const auto begin = Clock::now();
  require_supported(tables, options);
  const auto bound = model.bound_to(completed(tables.sample));
  const LargeRows rows{&tables.responses, &tables.features, tables.response_rows, tables.feature_rows};
  const Passes own(rows, *bound);
  SharedPasses passes(own, team);
  FitOfAll work(tables, model, *bound, options, passes);
  work.fit_sample(team);
  if (!team.leads()) {
    passes.serve();
    return {};
  }
  const double before = team.bytes_moved();
  Fit made = work.run();
  passes.finish();
  made.processes = team.size();
  made.passes = passes.passes();
  made.bytes_per_evaluation = (team.bytes_moved() - before) / std::max(1, made.evaluations);
  made.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  made.peak_memory_mb = peak_memory_mb();
  return made;
}

}  // namespace unshuffle::large
