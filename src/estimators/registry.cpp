// One row per estimator: its name and traits.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/estimators/estimators.hpp"

namespace unshuffle {

namespace {

constexpr std::array<EstimatorTraits, std::variant_size_v<Estimator>> table{{
    {.name = "auto",
     .help = "examines the data, chooses one of the others and explains the choice",
     .prior = true,
     .likelihood = true,
     .tells_links = true,
     .in_pieces = true,
     .shares_plan = true},
    {.name = "mixture",
     .help = "rows in order, some linked wrongly: estimates which, and how many",
     .likelihood = true,
     .tells_links = true,
     .in_pieces = true},
    {.name = "adjusted",
     .help = "regression on rows in order, adjusted for the share that is linked wrongly",
     .likelihood = true},
    {.name = "entropic",
     .help = "maximum likelihood over all links, noise estimated, searched from many starts",
     .prior = true,
     .likelihood = true,
     .in_pieces = true},
    {.name = "registration",
     .help = "maximum likelihood of a rigid, similar or affine map, some rows without a partner, from any rotation",
     .dense = true,
     .compared = Compared::on_request},
    {.name = "robot",
     .help = "descent on the transport cost by its exact gradient; every row has a partner",
     .prior = true,
     .traced = true,
     .in_pieces = true,
     .shares_plan = true},
    {.name = "robot-robust",
     .help = "the same, with rows allowed to stay unmatched",
     .prior = true,
     .traced = true,
     .in_pieces = true,
     .shares_plan = true},
    {.name = "robot-unrolled",
     .help = "as robot, by the gradient of a fixed number of Sinkhorn iterations (for comparison)",
     .dense = true,
     .traced = true,
     .compared = Compared::on_request},
    {.name = "ls", .help = "ordinary regression as if rows were linked in the order given"},
    {.name = "oracle", .help = "ordinary regression on known pairs", .compared = Compared::with_known_pairs},
    {.name = "am",
     .help = "alternating minimisation: best matching, refit, again",
     .dense_in_space = true,
     .traced = true},
    {.name = "em",
     .help = "stochastic EM: refit on the average of sampled matchings",
     .dense_in_space = true,
     .traced = true},
    {.name = "hard-em", .help = "EM with the single best matching sampled", .dense_in_space = true, .traced = true},
    {.name = "rr",
     .help = "robust regression on rows in the order given, then outliers are rematched",
     .dense_in_space = true},
    {.name = "rs", .help = "random sample consensus over small sets of rows", .dense_in_space = true},
    {.name = "one-step",
     .help = "rows rematched by a regression on rows in order, then regression",
     .dense_in_space = true},
    {.name = "sliced-gw",
     .help = "links from sliced Gromov-Wasserstein alignment, then regression",
     .dense_in_space = true},
    {.name = "sinkhorn-gw",
     .help = "links from entropic Gromov-Wasserstein alignment, then regression",
     .dense = true,
     .compared = Compared::on_small_tables},
}};

template <class Wanted, class... Types>
constexpr std::size_t place_among(const std::variant<Types...>*) {
  std::size_t place = 0;
  (void)((std::same_as<Wanted, Types> || (++place, false)) || ...);
  return place;
}

// The rows follow the order of the variant; checked for a few.
template <class Wanted>
constexpr bool stands_as(std::string_view name) {
  return table[place_among<Wanted>(static_cast<Estimator*>(nullptr))].name == name;
}
static_assert(stands_as<Auto>("auto") && stands_as<Entropic>("entropic") &&
              stands_as<RobotUnrolled>("robot-unrolled") && stands_as<Oracle>("oracle") && stands_as<Rr>("rr") &&
              stands_as<SinkhornGw>("sinkhorn-gw"));

/// Every type of the variant with its defaults, in order.
template <std::size_t... k>
std::vector<Estimator> defaults(std::index_sequence<k...>) {
  return {Estimator(std::in_place_index<k>)...};
}

const std::vector<Estimator>& all_defaults() {
  static const std::vector<Estimator> all = defaults(std::make_index_sequence<std::variant_size_v<Estimator>>());
  return all;
}

bool reads(const EstimatorEntry& entry, std::string_view name) {
  return std::any_of(entry.options.begin(), entry.options.end(),
                     [&](const OptionInfo& info) { return info.name == name; });
}

std::string readers_of(std::string_view name) {
  std::vector<std::string> names;
  for (const EstimatorEntry& entry : all_estimators()) {
    if (reads(entry, name)) names.emplace_back(entry.traits.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool given_both(const std::vector<std::string>& given, std::string_view one, std::string_view other) {
  const auto has = [&](std::string_view name) { return std::find(given.begin(), given.end(), name) != given.end(); };
  return has(one) && has(other);
}

/// One side of a robust plan.
struct RobustSide {
  double rho;
  double rows;
  double unmatched;

  [[nodiscard]] double spread() const { return rho * rows; }

  /// The share of its rows that may stay unmatched: f of them need a spread of f/(1-f).
  [[nodiscard]] double left_out() const { return rho >= 0 ? spread() / (1 + spread()) : unmatched; }
};

// Each side may leave its share unmatched; the larger side also its surplus rows.
transport::MarginalPolicy relaxed(const RobustSide& side, const RobustSide& other) {
  if (side.rho == 0) return transport::Exact{};
  if (side.rho > 0) return transport::Ball{.spread = side.spread()};
  const double partners = (1 - other.left_out()) * other.rows;
  const double left_out = std::max(side.left_out(), 1 - partners / side.rows);
  return transport::Ball{.spread = left_out / (1 - left_out)};
}

/// A share of a side's rows may stay unmatched.
transport::MarginalPolicy without(double share) {
  constexpr double none = 1e-6, most = 0.99;
  if (!(share > none)) return transport::Exact{};
  const double left_out = std::min(share, most);
  return transport::Ball{.spread = left_out / (1 - left_out)};
}

EvaluatorOptions plan_of(const Robot& robot) {
  return evaluator_options(robot.precision, robot.smoothing.resolved(), robot.objective);
}

EvaluatorOptions plan_of(const RobotRobust& robust) { return plan_of(robust.robot); }
EvaluatorOptions plan_of(const HardEm& hard) {
  return evaluator_options(hard.em.plan.precision, hard.em.plan.smoothing.resolved());
}

template <class E>
EvaluatorOptions plan_of(const E& estimator) {
  if constexpr (requires { estimator.plan; }) {
    return evaluator_options(estimator.plan.precision, estimator.plan.smoothing.resolved());
  } else if constexpr (requires { estimator.smoothing; }) {
    return evaluator_options(estimator.precision, estimator.smoothing.resolved());
  } else {
    return evaluator_options(estimator.precision);
  }
}

void require_consistent(const Robot& robot) {
  const double epsilon = robot.smoothing.resolved().value;
  if (robot.descent.epsilon_start == 0 || robot.descent.epsilon_start > epsilon) return;
  throw InvalidInput(
      fmt::format("{} = {} must be above ε = {}", option("epsilon_start"), robot.descent.epsilon_start, epsilon));
}

void require_consistent(const RobotRobust& robust) {
  require_consistent(robust.robot);
  if (robust.rho1 == 0 && robust.rho2 == 0)
    throw InvalidInput(fmt::format("{} = 0 must be > 0 where {} = 0", option("rho2"), option("rho1")));
}

template <class E>
void require_consistent(const E& estimator) {
  if constexpr (requires {
                  estimator.response_noise;
                  estimator.noise;
                }) {
    const NoiseCovariance asked = estimator.response_noise.covariance;
    if (estimator.noise.sd > 0 && asked != NoiseCovariance::automatic && asked != NoiseCovariance::equal)
      throw InvalidInput(fmt::format("{} is one number, so the noise has one variance; {} and {} exclude each other",
                                     option("noise_sd"), option("noise_sd"), option("noise_covariance")));
  }
  if constexpr (requires {
                  estimator.family;
                  estimator.noise;
                }) {
    if (!estimator.family.is_gaussian() && estimator.noise.sd > 0)
      throw InvalidInput(fmt::format("{} applies only with {}", option("noise_sd"), option("family", "gaussian")));
  }
  if constexpr (requires {
                  estimator.family;
                  estimator.law;
                }) {
    if (!estimator.family.is_gaussian() && estimator.law != NoiseLawKind::automatic)
      throw InvalidInput(fmt::format("{} applies only with {}", option("noise_law"), option("family", "gaussian")));
  }
}

/// Rows per mini-batch of models that are not linear, as in the paper's experiments.
Index paper_batch(Index rows, bool linear_in_parameters) {
  if (linear_in_parameters) return 500;
  return rows <= 100 ? 10 : rows <= 200 ? 30 : rows <= 500 ? 50 : rows <= 1000 ? 100 : 300;
}

}  // namespace

const EstimatorTraits& traits_of(const Estimator& estimator) { return table[estimator.index()]; }

std::string_view name_of(const Estimator& estimator) { return traits_of(estimator).name; }

std::optional<Estimator> estimator_named(std::string_view name) {
  for (const Estimator& one : all_defaults()) {
    if (name_of(one) == name) return one;
  }
  return std::nullopt;
}

const std::vector<EstimatorEntry>& all_estimators() {
  static const std::vector<EstimatorEntry> entries = [] {
    std::vector<EstimatorEntry> result;
    for (const Estimator& one : all_defaults()) {
      result.push_back(
          {traits_of(one),
           std::visit([](const auto& estimator) { return describe_options<std::decay_t<decltype(estimator)>>(); },
                      one)});
    }
    return result;
  }();
  return entries;
}

std::string estimators_with(bool EstimatorTraits::*trait) {
  std::vector<std::string_view> names;
  for (const EstimatorTraits& row : table) {
    if (row.*trait) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void set_option(Estimator& estimator, std::string_view name, const OptionValue& value) {
  if (std::visit([&](auto& one) { return set_option(one, name, value); }, estimator)) return;
  const std::string readers = readers_of(name);
  if (readers.empty()) throw InvalidInput(fmt::format("there is no option {}", option(name)));
  throw InvalidInput(fmt::format("{} applies only with {}", option(name), option("method", readers)));
}

void validate(const Estimator& estimator, const std::vector<std::string>& given) {
  if (given_both(given, "epsilon", "epsilon_abs"))
    throw InvalidInput(fmt::format("{} and {} exclude each other", option("epsilon"), option("epsilon_abs")));
  std::visit(
      [&](const auto& one) {
        validate_options(one, given);
        require_consistent(one);
      },
      estimator);
}

std::vector<std::string> unread_options(const Estimator& estimator) {
  return std::visit([](const auto& one) { return unread_options(one); }, estimator);
}

Precision precision_of(const Estimator& estimator) {
  const EvaluatorOptions plan = plan_options(estimator, 1, 1);
  return {plan.backend, plan.tolerance, plan.accuracy};
}

int bootstrap_of(const Estimator& estimator) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.bootstrap; }) return one.bootstrap.samples;
        return 0;
      },
      estimator);
}

double noise_sd_of(const Estimator& estimator) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.noise; }) return one.noise.sd;
        return 0.0;
      },
      estimator);
}

FamilyKind family_kind_of(const Estimator& estimator) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.family; }) return one.family.kind;
        return FamilyKind::gaussian;
      },
      estimator);
}

std::vector<std::pair<std::string, OptionValue>> option_values(const Estimator& estimator) {
  return std::visit([](const auto& one) { return option_values(one); }, estimator);
}

std::string all_as_text(const Estimator& estimator) {
  std::string out(name_of(estimator));
  for (const auto& [name, value] : option_values(estimator)) out += fmt::format(" {}={}", name, text_of(value));
  return out;
}

EvaluatorOptions plan_options(const Estimator& estimator, double responses, double features) {
  EvaluatorOptions result = std::visit([](const auto& one) { return plan_of(one); }, estimator);
  if (traits_of(estimator).likelihood) result.response_side = result.feature_side = transport::Sampled{};
  if (const auto* registration = std::get_if<Registration>(&estimator)) {
    const double links = (1 - std::max(0.0, registration->outliers)) * responses;
    result.response_side = without(1 - links / responses);
    result.feature_side = without(1 - links / features);
  }
  if (const auto* robust = std::get_if<RobotRobust>(&estimator)) {
    const RobustSide response_side{robust->rho1, responses, robust->unmatched};
    const RobustSide feature_side{robust->rho2, features, robust->unmatched};
    result.response_side = relaxed(response_side, feature_side);
    result.feature_side = relaxed(feature_side, response_side);
  }
  return result;
}

Robot with_paper_settings(Robot robot, Index rows, bool linear_in_parameters) {
  robot.descent.optimizer = Optimizer::momentum;
  robot.descent.step.learning_rate = 1e-4;
  robot.descent.step.batch = paper_batch(rows, linear_in_parameters);
  robot.descent.epsilon_start = 0;
  robot.smoothing = {};
  if (robot.limit.max_iterations == 0) robot.limit.max_iterations = linear_in_parameters ? 2000 : 80;
  return robot;
}

Am with_paper_settings(Am am, Index rows, bool linear_in_parameters) {
  am.matched_step = MatchedStep::gradient;
  am.step.learning_rate = 1e-4;
  am.step.batch = paper_batch(rows, linear_in_parameters);
  am.plan.smoothing = {};
  if (am.limit.max_iterations == 0) am.limit.max_iterations = linear_in_parameters ? 2000 : 80;
  return am;
}

}  // namespace unshuffle
