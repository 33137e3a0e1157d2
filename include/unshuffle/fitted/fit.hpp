// From two unlinked tables to a regression: starts, descent, the best of them, and what to think of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/model/model.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// What each of them does: methods.hpp and docs/methods/.
enum class Method {
  robot,
  robot_robust,
  robot_unrolled,
  ls,
  oracle,
  am,
  em,
  hard_em,
  rr,
  rs,
  sliced_gw,
  sinkhorn_gw,
  one_step,
  automatic,
  mixture,
  entropic,
  adjusted,
};

/// How alternating minimisation moves w once rows are matched.
enum class MatchedStep {
  exact,     ///< Least squares on the matched rows.
  gradient,  ///< One gradient step with momentum, the paper's variant.
};

enum class Optimizer {
  automatic,     ///< trust_region on the sorted backend from starts that know how near they are, else lbfgs.
  trust_region,  ///< Newton steps in a trust region; needs the sorted backend.
  lbfgs,         ///< Limited-memory quasi-Newton with a strong-Wolfe line search.
  momentum,      ///< Gradient descent with momentum at a fixed step, the paper's.
  adam,          ///< Mini-batches of rows drawn anew every step.
};

enum class StartKind {
  automatic,      ///< What the problem offers (docs/optimisers.md): ransac with the row hint, else all the others.
  least_squares,  ///< Ordinary regression as if rows were linked in the order given (n = m only).
  ransac,         ///< Consensus over small samples of rows linked in the order given.
  group_means,    ///< Regression of the groups' means, which are linked although their rows are not.
  random,         ///< Gaussian coefficients of the scale that explains the spread of y.
  user,           ///< FitOptions::start.
};

class FinishedWork;
class Team;

struct FitOptions {
  Method method = Method::robot;
  Objective objective = Objective::transport;
  Epsilon epsilon;
  double epsilon_start =
      0;  ///< When larger than epsilon (same meaning): begin there and go down to epsilon by factors.
  Backend backend = Backend::automatic;

  bool row_hint = false;             ///< Row i of D1 is probably linked with row i of D2; feeds the RANSAC start.
  bool row_order_unrelated = false;  ///< automatic: do not even look whether rows in order belong together.
  double unmatched = 0.2;            ///< robot_robust: share of the smaller side that may stay unmatched.
  double rho1 = -1;  ///< robot_robust: ‖μ̄-μ‖² ≤ rho1 on the simplex; overrides `unmatched` when ≥ 0.
  double rho2 = -1;  ///< Likewise for the features.

  StartKind start_kind = StartKind::automatic;
  Vector start;                    ///< For StartKind::user.
  int starts = 0;                  ///< How many; 0 chooses by start kind.
  double start_confidence = 0.95;  ///< A RANSAC consensus knows its own uncertainty; the descent (trust_region, lbfgs)
                                   ///< stays within this confidence region of it. 0: free descent.
  Optimizer optimizer = Optimizer::automatic;
  int max_iterations = 0;            ///< Outer iterations per start; 0 chooses by optimiser.
  double learning_rate = 1e-4;       ///< momentum and adam.
  double momentum = 0.9;             ///< momentum only.
  Index batch = 0;                   ///< Rows per mini-batch of momentum and adam; 0: all.
  double tolerance = 1e-9;           ///< Marginal error of the inner problem.
  double accuracy = 1e-10;           ///< Of the compressed measures on the sorted backend, see EvaluatorOptions.
  double gradient_tolerance = 1e-6;  ///< Outer loop stops when ‖∇‖ falls below this, relative to its natural scale.

  MatchedStep am_step = MatchedStep::exact;  ///< am: gradient reads learning_rate, momentum and batch.
  int em_chains = 4;                         ///< em, hard_em: independent Metropolis chains per start.
  double em_swaps = 20;         ///< em, hard_em: swaps proposed per row, chain and E step; half are burn-in.
  double rr_threshold = 1.345;  ///< rr: where Huber's loss turns linear, in noise standard deviations.
  Index rs_samples = 200000;    ///< rs: hypotheses tried.
  double rs_threshold = 1e-2;   ///< rs: largest residual of an inlier, in standard deviations of the response.
  int gw_slices = 200;          ///< sliced_gw: directions tried.
  double gw_epsilon = 5e-3;     ///< sinkhorn_gw and starts by alignment: smoothing, relative to the largest linearised
                                ///< cost of the first plan.
  int unroll = 200;             ///< robot_unrolled: Sinkhorn iterations that are differentiated through.

  double known_noise_sd = 0;  ///< mixture, entropic: the noise's standard deviation; 0: estimated.
  int bootstrap = 0;          ///< mixture, entropic: samples drawn from the fitted model for standard errors; 0: none.

  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all. Same answer for any number.

  /// File in which finished starts, refinements and bootstrap samples are kept; the same fit goes on from it after it
  /// was cut off, to the same bits. Empty: none. Not for tables in pieces.
  std::string checkpoint;
  std::shared_ptr<FinishedWork> finished;  ///< What is in it; set by fit().

  /// Processes that call fit() alike, each with all rows, and share the work; all get the same answer. Must outlive the
  /// fit; none: this process alone. Only the leader's progress and checkpoint are used, and progress cannot stop them.
  Team* team = nullptr;

  /// Called with (done, total) units of work from the calling thread; return false to stop early.
  std::function<bool(double, double)> progress;
};

/// One line of the trace: an outer iteration of a start.
struct TracePoint {
  int start;
  int iteration;
  double epsilon;
  double objective;
  double gradient_norm;
  double marginal_error;
  int inner_iterations;
};

/// What one start led to.
struct Candidate {
  std::string start;  ///< Its kind: "ransac", "least squares", ...
  Vector parameters;
  double objective = 0;
  bool converged = false;
  int iterations = 0;
  std::string message;
};

/// Whether the data can tell the answer from others.
enum class Verdict { not_assessed, identified, weakly_identified, not_identifiable };

/// A solution that competes with the answer.
struct Alternative {
  Vector parameters;
  double gap = 0;  ///< Nats by which it is less likely than the answer; NaN where the method has no likelihood.
  double objective = 0;
  std::string origin;  ///< The start it was reached from, or the symmetry that maps the answer to it.
};

struct Identifiability {
  Verdict verdict = Verdict::not_assessed;
  std::string reason;  ///< One sentence.
  std::string advice;  ///< One sentence; empty when there is nothing to do.
  std::vector<Alternative> alternatives;
};

/// 95 % of a standard normal variable are less than this from zero.
inline constexpr double normal_quantile = 1.959963984540054;

struct Fit {
  enum class Status { converged, inner_not_converged, outer_not_converged, stopped };
  Status status = Status::converged;
  std::string message;  ///< Inner and outer convergence in plain words.

  Method method = Method::robot;
  std::string model;
  Objective objective_kind = Objective::transport;
  std::string objective_name;  ///< What `objective` is: "transport", "entropic", "squared residuals", ...
  Backend backend = Backend::dense;
  std::vector<std::string> names;  ///< Of the parameters, in order.
  Vector parameters;
  Matrix covariance;  ///< Of the parameters; empty when it could not be had or would mislead.
  Matrix margins;     ///< How far 95 % intervals reach below and above the parameters; empty: by the standard errors.
  std::string std_error_note;  ///< Where standard errors come from, or why there are none.

  double objective = 0;       ///< What the method minimises, as a sum over rows; see objective_name.
  double transport_cost = 0;  ///< n·<C, Γ>.
  double epsilon = 0;         ///< In the unit of the cost.
  double epsilon_relative = 0;
  double marginal_error = 0;
  double compression_error = 0;  ///< As measured on the final plan, see SoftLinks::measured_error.
  double noise_sd = 0;
  double matched_share = 0;
  Identifiability identifiable;
  std::string choice;             ///< What `auto` chose and why; empty for methods that were named.
  Method chosen = Method::robot;  ///< The method that `auto` chose; else `method` itself.
  Vector link_probabilities;      ///< mixture: that response i belongs to the feature row beside it; NaN: it has none.
  int iterations = 0;             ///< Outer iterations of the start that won.
  int evaluations = 0;            ///< Hypergradients over all starts.
  double seconds = 0;
  double peak_memory_mb = 0;
  std::uint64_t seed = 0;
  Index responses = 0;
  Index features = 0;

  int processes = 1;                ///< That shared the work.
  int passes = 0;                   ///< Over tables in pieces; 0: the tables were in memory.
  double bytes_per_evaluation = 0;  ///< Between processes, through the one that leads.

  std::vector<Candidate> candidates;  ///< Every start, best first.
  std::vector<TracePoint> trace;

  /// Empty without a covariance.
  [[nodiscard]] Vector std_errors() const;
  /// Both ends of the 95 % interval of every parameter, a row each; NaN where there is none.
  [[nodiscard]] Matrix intervals() const;
  /// The table a statsmodels user recognises.
  [[nodiscard]] std::string summary() const;
  /// The same as one JSON object, by the names of docs/json.md.
  [[nodiscard]] std::string to_json() const;
};

/// Throws InvalidInput naming the option, its value and the broken constraint.
void validate(const FitOptions& options);

/// What the evaluator is told for these options, marginal policies included.
[[nodiscard]] EvaluatorOptions evaluator_options(const FitOptions& options, const Problem& problem);

/// The paper's training: momentum at 1e-4 on mini-batches, ε = 1e-4 of the largest cost, 2000 steps on batches of 500
/// for models linear in w, else 80 steps on batches that grow with n. Alternating minimisation takes gradient steps.
[[nodiscard]] FitOptions with_paper_settings(FitOptions options, Index rows, bool linear_in_parameters);

[[nodiscard]] Fit fit(const Problem& problem, const Model& model, const FitOptions& options = {});

}  // namespace unshuffle
