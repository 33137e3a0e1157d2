// The estimators as values. docs/methods describes what each does; its options are declared here, once.
//
// To add an option: a field and its description in the struct. To add an estimator: a struct, its place in `Estimator`,
// a row of traits in registry.cpp and a function estimate(const TheStruct&, const Input&).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"
#include "unshuffle/families/family.hpp"
#include "unshuffle/families/noise_covariance.hpp"
#include "unshuffle/likelihood/weighting.hpp"
#include "unshuffle/objective/settings.hpp"
#include "unshuffle/optimise/descent_options.hpp"
#include "unshuffle/starts/start_options.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

struct IterationLimit {
  int max_iterations = 0;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"max_iterations", "Per start; 0 chooses.", not_negative}, self.max_iterations);
  }
};

struct Noise {
  double sd = 0;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"noise_sd", "Standard deviation of the noise when it is known; 0: estimated.", not_negative},
          self.sd);
  }
};

/// The noise of several responses.
struct ResponseNoise {
  NoiseCovariance covariance = NoiseCovariance::automatic;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(
        OptionText{"noise_covariance",
                   "Noise of several responses: full (each has a variance, every two a correlation), diagonal (no "
                   "correlations), equal (one variance; responses must be in like units), or auto: full for up to six "
                   "responses, else diagonal. With noise_sd: equal."},
        self.covariance);
  }
};

/// The law of the response around the model.
struct FamilyChoice {
  FamilyKind kind = FamilyKind::gaussian;

  [[nodiscard]] bool is_gaussian() const { return kind == FamilyKind::gaussian; }

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"family",
                     "Law of the response: gaussian; binomial (0 and 1, or successes of trials; logit link); poisson, "
                     "negative-binomial (counts) and gamma (amounts above 0), all with log link; student (heavy "
                     "tails); cox (proportional hazards of times; links known or "
                     "rows in order)."},
          self.kind);
  }
};

struct Bootstrap {
  int samples = 0;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(
        OptionText{"bootstrap",
                   "Standard errors from this many samples of the fitted model (adjusted: of the rows); 0: by formula.",
                   {"0 or at least 2", [](double v) { return v == 0 || v >= 2; }}},
        self.samples);
  }
};

struct Sensitivity {
  bool quick = false;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"quick",
                     "Do not test how the answer would change under other assumptions; the verdict then states "
                     "that they are untested."},
          self.quick);
  }
};

/// Chooses by the evidence about the links, and explains the choice.
struct Auto {
  Precision precision{};
  StartOptions starts{};
  IterationLimit limit{};
  Noise noise{};
  Bootstrap bootstrap{};
  Sensitivity sensitivity{};
  FamilyChoice family{};
  ResponseNoise response_noise{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.precision, self.starts, self.limit, self.noise, self.bootstrap, self.sensitivity,
                  self.family, self.response_noise);
  }
};

/// The noise law of rightly linked rows.
enum class NoiseLawKind {
  automatic,  ///< Normal unless the data contradicts it, else estimated.
  normal,
  estimated,  ///< A density of any shape whose spread may change with the prediction; one response.
};
inline constexpr std::array noise_law_words{Word<NoiseLawKind>{"auto", NoiseLawKind::automatic},
                                            Word<NoiseLawKind>{"normal", NoiseLawKind::normal},
                                            Word<NoiseLawKind>{"estimated", NoiseLawKind::estimated}};
constexpr std::span<const Word<NoiseLawKind>> words_of(NoiseLawKind) { return noise_law_words; }

/// Rows in order, some linked wrongly.
struct Mixture {
  NoiseLawKind law = NoiseLawKind::automatic;
  Precision precision{};
  IterationLimit limit{};
  Noise noise{};
  Bootstrap bootstrap{};
  FamilyChoice family{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"noise_law",
                     "Noise law of rightly linked rows: normal, estimated (any shape, one response), or "
                     "auto: normal unless the data contradicts it."},
          self.law);
    describe_each(visit, self.precision, self.limit, self.noise, self.bootstrap, self.family);
  }
};

/// The share of wrong links that regression on rows in order assumes.
enum class WrongShare {
  interval,  ///< Anything from zero to the bound set by contradictions; its uncertainty is part of the standard errors.
  bound,     ///< The bound.
};
inline constexpr std::array wrong_share_words{Word<WrongShare>{"interval", WrongShare::interval},
                                              Word<WrongShare>{"bound", WrongShare::bound}};
constexpr std::span<const Word<WrongShare>> words_of(WrongShare) { return wrong_share_words; }

/// Regression on rows in order, adjusted for the share that is linked wrongly.
struct Adjusted {
  WrongShare wrong_share = WrongShare::interval;
  Weighting weighting = Weighting::lahiri_larsen;
  Precision precision{};
  Bootstrap bootstrap{};
  FamilyChoice family{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"wrong_share",
                     "What the share of wrong links is taken to be: interval (from none to the bound that "
                     "contradictions allow, counted into the standard errors), or the bound itself."},
          self.wrong_share);
    visit(
        OptionText{"weighting",
                   "Estimating equations where the rate of wrong links is stated: ratio, lahiri-larsen, or blue (best "
                   "linear unbiased)."},
        self.weighting);
    describe_each(visit, self.precision, self.bootstrap, self.family);
  }
};

/// Maximum likelihood over all links.
struct Entropic {
  Precision precision{};
  StartOptions starts{};
  Noise noise{};
  Bootstrap bootstrap{};
  Sensitivity sensitivity{};
  FamilyChoice family{};
  ResponseNoise response_noise{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.precision, self.starts, self.noise, self.bootstrap, self.sensitivity, self.family,
                  self.response_noise);
  }
};

/// Maximum likelihood of a map of the plane or of space, some rows of either table without a partner.
struct Registration {
  double outliers = -1;  ///< Negative: estimated.
  Precision precision{};
  Noise noise{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"outliers",
                     "Share of the responses that have no partner among the features; negative: estimated.",
                     {"below 1", [](double v) { return v < 1 && std::isfinite(v); }}},
          self.outliers);
    describe_each(visit, self.precision, self.noise);
  }
};

struct PaperSettings {
  bool paper = false;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"paper_settings",
                     "Train as the paper does: momentum on mini-batches of 500 rows, rate 1e-4, 2000 steps (models "
                     "that are not linear: 80 steps, smaller batches), epsilon 1e-4 of the largest cost."},
          self.paper);
  }
};

/// Descent on the transport cost by its exact gradient; every row has a partner.
struct Robot {
  Objective objective = Objective::transport;
  Smoothing smoothing{};
  Precision precision{};
  StartOptions starts{};
  IterationLimit limit{};
  DescentOptions descent{};
  PaperSettings paper{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"objective", "Minimise the transport cost, or the entropic value."}, self.objective);
    describe_each(visit, self.smoothing, self.precision, self.starts, self.limit, self.descent, self.paper);
  }
};

/// The same, with rows allowed to stay unmatched.
struct RobotRobust {
  double unmatched = 0.2;
  double rho1 = -1;  ///< Negative: not given.
  double rho2 = -1;
  Robot robot{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"unmatched",
                     "Share of the smaller table that may stay unmatched; of the larger, also its surplus rows.",
                     proper_share},
          self.unmatched);
    visit(OptionText{"rho1",
                     "Instead of unmatched: squared distance the row sums of the plan may have from the response "
                     "weights (both sum to one); 0: none, every row is matched.",
                     not_negative},
          self.rho1);
    visit(OptionText{"rho2", "Likewise for the features.", not_negative}, self.rho2);
    describe_each(visit, self.robot);
  }
};

/// As Robot, by the gradient of a fixed number of Sinkhorn iterations; for comparison.
struct RobotUnrolled {
  int unroll = 200;
  Smoothing smoothing{};
  Precision precision{};
  StartOptions starts{};
  IterationLimit limit{};
  DescentOptions descent{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"unroll", "Sinkhorn iterations differentiated through.", at_least_one}, self.unroll);
    describe_each(visit, self.smoothing, self.precision, self.starts, self.limit, self.descent);
  }
};

/// The plan at the answer of a method that chooses its own links.
struct PlanAtAnswer {
  Smoothing smoothing{};
  Precision precision{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.smoothing, self.precision);
  }
};

/// Ordinary regression as if rows were linked in the order given.
struct Ls {
  PlanAtAnswer plan{};
  FamilyChoice family{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.plan, self.family);
  }
};

/// Ordinary regression on known pairs.
struct Oracle {
  PlanAtAnswer plan{};
  FamilyChoice family{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.plan, self.family);
  }
};

/// How alternating minimisation moves w once rows are matched.
enum class MatchedStep {
  exact,     ///< Least squares on the matched rows.
  gradient,  ///< One gradient step with momentum, the paper's variant.
};
inline constexpr std::array matched_step_words{Word<MatchedStep>{"exact", MatchedStep::exact},
                                               Word<MatchedStep>{"gradient", MatchedStep::gradient}};
constexpr std::span<const Word<MatchedStep>> words_of(MatchedStep) { return matched_step_words; }

/// Alternating minimisation: best matching, refit, again.
struct Am {
  MatchedStep matched_step = MatchedStep::exact;
  StepOptions step{};
  double gradient_tolerance = 1e-6;
  StartOptions starts{};
  IterationLimit limit{};
  PaperSettings paper{};
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"am_step", "Refit exactly after each matching, or one gradient step."}, self.matched_step);
    const bool stepwise = self.matched_step == MatchedStep::gradient || self.paper.paper;
    StepOptions::describe(self.step, visit, {stepwise, stepwise, "gradient steps", "gradient steps"});
    visit(gradient_tolerance_option(), self.gradient_tolerance);
    describe_each(visit, self.starts, self.limit, self.paper, self.plan);
  }
};

/// Metropolis chains over matchings.
struct Chains {
  int count = 4;
  double swaps = 20;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"em_chains", "Independent chains over matchings, per start.", at_least_one}, self.count);
    visit(OptionText{"em_swaps", "Swaps proposed per row, chain and iteration; half are burn-in.", positive},
          self.swaps);
  }
};

/// Stochastic EM: refit on the average of sampled matchings.
struct Em {
  Chains chains{};
  StartOptions starts{};
  IterationLimit limit{};
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.chains, self.starts, self.limit, self.plan);
  }
};

/// EM with the single best matching sampled.
struct HardEm {
  Em em{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.em);
  }
};

/// Robust regression on rows in the order given, then outliers are rematched.
struct Rr {
  double threshold = 1.345;
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"rr_threshold", "Residuals beyond this many noise standard deviations count as wrong links.",
                     positive},
          self.threshold);
    describe_each(visit, self.plan);
  }
};

/// Random sample consensus over small sets of rows.
struct Rs {
  Index samples = 200000;
  double threshold = 1e-2;
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"rs_samples", "Hypotheses tried.", at_least_one}, self.samples);
    visit(OptionText{"rs_threshold", "Largest residual of a row that agrees, in standard deviations of the response.",
                     positive},
          self.threshold);
    describe_each(visit, self.plan);
  }
};

/// Rows rematched by a regression on rows in order, then regression.
struct OneStep {
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    describe_each(visit, self.plan);
  }
};

/// Links from sliced Gromov-Wasserstein alignment, then regression.
struct SlicedGw {
  int slices = 200;
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"gw_slices", "Directions tried.", at_least_one}, self.slices);
    describe_each(visit, self.plan);
  }
};

/// Links from entropic Gromov-Wasserstein alignment, then regression.
struct SinkhornGw {
  double epsilon = alignment_epsilon;
  PlanAtAnswer plan{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"gw_epsilon", "Smoothing of the alignment, relative to the largest linearised cost.", positive},
          self.epsilon);
    describe_each(visit, self.plan);
  }
};

/// In the order they are listed to users.
using Estimator = std::variant<Auto, Mixture, Adjusted, Entropic, Registration, Robot, RobotRobust, RobotUnrolled, Ls,
                               Oracle, Am, Em, HardEm, Rr, Rs, OneStep, SlicedGw, SinkhornGw>;

/// Whether `unshuffle compare` tries it by default.
enum class Compared {
  always,
  with_known_pairs,  ///< Requires them.
  on_small_tables,   ///< On larger ones it takes longer than all the others together.
  on_request,
};

/// The kind of estimator. Code asks for traits, never for a particular estimator.
struct EstimatorTraits {
  std::string_view name;        ///< As typed: "robot-robust".
  std::string_view help;        ///< One line.
  bool dense = false;           ///< Holds matrices of responses × features whatever the model.
  bool dense_in_space = false;  ///< Likewise unless there is one response and the model is additive.
  bool prior = false;           ///< Reads prior weights of pairs and soft keys.
  bool traced = false;          ///< Keeps a trace of its iterations.
  bool likelihood = false;      ///< Its links have a likelihood: they are one to one, and ε is that of the noise.
  bool tells_links = false;     ///< May estimate how likely each row is linked in the order given.
  bool in_pieces = false;       ///< Fits tables that are larger than memory.
  bool shares_plan = false;     ///< Processes can share one plan between them.
  Compared compared = Compared::always;
};

/// A row of the table by which `auto` chooses; the first that applies is taken.
struct AutoRule {
  std::string_view when;
  std::string_view estimators;
  std::string_view what;
};
[[nodiscard]] std::vector<AutoRule> auto_rules();

[[nodiscard]] const EstimatorTraits& traits_of(const Estimator& estimator);
[[nodiscard]] std::string_view name_of(const Estimator& estimator);

/// By the name users type, with its defaults.
[[nodiscard]] std::optional<Estimator> estimator_named(std::string_view name);

struct EstimatorEntry {
  EstimatorTraits traits;
  std::vector<OptionInfo> options;
};

/// All of them, in the order they are listed to users.
[[nodiscard]] const std::vector<EstimatorEntry>& all_estimators();

/// Names of the estimators with this trait, separated by commas.
[[nodiscard]] std::string estimators_with(bool EstimatorTraits::*trait);

/// Sets one option by name. Throws InvalidInput if the estimator does not read it, naming those that do, or if the
/// value is invalid.
void set_option(Estimator& estimator, std::string_view name, const OptionValue& value);

/// Throws InvalidInput naming the option, its value and the violated constraint; also for options in `given` that have
/// no effect with the others.
void validate(const Estimator& estimator, const std::vector<std::string>& given = {});

/// Names of its options that have no effect with the others.
[[nodiscard]] std::vector<std::string> unread_options(const Estimator& estimator);

/// Options common to several estimators; defaults for one that does not read them.
[[nodiscard]] Precision precision_of(const Estimator& estimator);
[[nodiscard]] int bootstrap_of(const Estimator& estimator);
[[nodiscard]] double noise_sd_of(const Estimator& estimator);
[[nodiscard]] FamilyKind family_kind_of(const Estimator& estimator);

/// Every option by name with its value.
[[nodiscard]] std::vector<std::pair<std::string, OptionValue>> option_values(const Estimator& estimator);

/// The name and every option with its value, for keys and digests.
[[nodiscard]] std::string all_as_text(const Estimator& estimator);

/// Settings of the plan at the answer: ε (which estimators with a likelihood replace by that of the noise), precision,
/// and the policies of both sides for tables of that many rows.
[[nodiscard]] EvaluatorOptions plan_options(const Estimator& estimator, double responses, double features);

/// The paper's training: momentum at 1e-4 on mini-batches, ε = 1e-4 of the largest cost, 2000 steps on batches of 500
/// for models linear in w, else 80 steps on batches that grow with n. Selected by paper_settings.
[[nodiscard]] Robot with_paper_settings(Robot robot, Index rows, bool linear_in_parameters);
[[nodiscard]] Am with_paper_settings(Am am, Index rows, bool linear_in_parameters);

}  // namespace unshuffle
