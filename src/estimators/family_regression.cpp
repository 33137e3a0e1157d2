#include "estimators/family_regression.hpp"

#include <fmt/format.h>

#include <cmath>

#include "likelihood/cox.hpp"
#include "likelihood/wrong_links.hpp"
#include "objective/transport_form.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

namespace {

void require_responses(const Problem& problem, const Family& family) {
  const Vector& trials = problem.facts.trials;
  for (Index row = 0; row < problem.responses(); ++row) {
    const double y = problem.y(row, 0), m = trials.size() > 0 ? trials(row) : 1;
    if (family.allows(y, m)) continue;
    throw BadData(fmt::format("response table, row {}: column \"{}\" is {}{}; {} needs responses that are {}", row + 1,
                              problem.y_names.front(), y, trials.size() > 0 ? fmt::format(" of {} trials", m) : "",
                              option("family", family.name()), family.expects()));
  }
}

void require_facts_of_use(const Problem& problem, const Estimator& estimator, const Family& family) {
  const RowFacts& facts = problem.facts;
  const bool offset = facts.response_offset.size() > 0 || facts.feature_offset.size() > 0;
  if (offset && !family.takes_offset()) {
    throw InvalidInput(fmt::format("{} applies only with a log or logit link; with {} subtract it from the response",
                                   option("offset"), option("family", family.name())));
  }
  if (facts.trials.size() > 0 && family.kind() != FamilyKind::binomial)
    throw InvalidInput(fmt::format("{} applies only with {}", option("trials"), option("family", "binomial")));
  if (facts.event.size() > 0 && family.kind() != FamilyKind::cox)
    throw InvalidInput(fmt::format("{} applies only with {}", option("event"), option("family", "cox")));
  const bool in_order = std::holds_alternative<Mixture>(estimator) || std::holds_alternative<Auto>(estimator) ||
                        (std::holds_alternative<Adjusted>(estimator) && facts.wrong_rate.size() > 0);
  if (facts.describes_links() && !in_order) {
    throw InvalidInput(fmt::format("{} cannot use what is known of links in the order given ({}, {}, {}); {} can",
                                   name_of(estimator), option("mismatch"), option("link_probability"),
                                   option("wrong_rate"), option("method", "mixture")));
  }
  if (facts.describes_links() && (problem.order == RowOrder::unrelated || problem.responses() != problem.features())) {
    throw InvalidInput(fmt::format(
        "what is known of links in the order given ({}, {}, {}) needs rows in order: tables of equal length and {}",
        option("mismatch"), option("link_probability"), option("wrong_rate"), option("hint", "rows")));
  }
  if (facts.audit > 0 && facts.wrong_rate.size() == 0)
    throw InvalidInput(fmt::format("{} applies only with {}", option("audit"), option("wrong_rate")));
}

void require_survival(const Input& input, const Estimator& estimator) {
  const Vector& event = input.problem.facts.event;
  if (event.size() == 0) {
    throw InvalidInput(fmt::format(
        "{} needs {}: 1 where the response is the time of an event, 0 where it was only observed until then",
        option("family", "cox"), option("event")));
  }
  if (!(event.array() == 0 || event.array() == 1).all())
    throw BadData("events have to be 1 (the time of an event) or 0 (observed only until then)");
  if (event.isZero(0)) throw BadData("no row has an event, so there is nothing that the hazard could depend on");
  if (!std::holds_alternative<Entropic>(estimator)) return;
  refuse_unlinked_survival();
}

}  // namespace

void refuse_unlinked_survival() {
  throw InvalidInput(fmt::format(
      "{} needs known links or rows in order ({}, {}): a baseline hazard of any shape explains times without "
      "links whatever the coefficients are",
      option("family", "cox"), option("known"), option("hint", "rows")));
}

void require_family(const Input& input, const Estimator& estimator) {
  const Family& family = family_of(family_kind_of(estimator));
  require_facts_of_use(input.problem, estimator, family);
  if (family.kind() == FamilyKind::gaussian) return;
  if (input.problem.outputs() != 1) {
    throw InvalidInput(
        fmt::format("{} is for one response; {} were given", option("family", family.name()), input.problem.outputs()));
  }
  require_linear_model(input, option("family", family.name()));
  require_responses(input.problem, family);
  if (family.kind() != FamilyKind::cox) return;
  require_survival(input, estimator);
  if (input.bound.name() != "linear")
    throw InvalidInput(fmt::format("{} needs {}; splines can be columns of a formula", option("family", "cox"),
                                   option("model", "linear")));
}

// Where the error of every η is, as a root mean square, a multiple of what one response tells of it.
OrderEvidence order_evidence(const Input& input, const CandidateLinks& candidates, const Family& family,
                             const OrderFit& fit) {
  const FamilyRows& rows = fit.rows;
  OrderEvidence evidence;
  evidence.rows = double(rows.size());
  evidence.parameters = input.bound.parameters();
  evidence.displacement = displacement_of(input.bound, candidates);
  // Where pairs that are known determine the coefficients, the order need not tell them.
  constexpr Index enough = 5;  // per parameter
  const bool known_suffice = candidates.known >= enough * evidence.parameters;
  evidence.chance = known_suffice ? 0 : significance_of_order(input.bound, candidates);
  const Matrix information = expected_information(family, rows, rows.design * fit.parameters + rows.offset, fit.shape);
  evidence.error = std::sqrt(std::max(0.0, information.cwiseProduct(fit.covariance).sum() / rows.weights.sum()));
  // Intervals held the truth in 75 % of such fits (bench_family_coverage); a stated rate or safe rows take the burden.
  evidence.told_by_few = family.kind() == FamilyKind::binomial && input.problem.facts.trials.size() == 0 &&
                         input.problem.facts.wrong_rate.size() == 0 && !known_suffice;
  return evidence;
}

std::vector<NamedEstimate> named_shape(const Family& family, const Shape& shape, const Vector& errors) {
  std::vector<NamedEstimate> made;
  const std::vector<std::string> names = family.shape_names();
  for (Index k = 0; k < family.shapes(); ++k) {
    const double value = std::exp(shape(k));
    made.push_back({names[std::size_t(k)], value, k < errors.size() ? value * errors(k) : std::nan("")});
  }
  return made;
}

double residual_sd(const Family& family, const FamilyRows& rows, const Vector& eta, const Vector& weights) {
  double squares = 0;
  for (Index i = 0; i < rows.size(); ++i)
    squares += weights(i) * std::pow(rows.y(i) - rows.trials(i) * family.mean(eta(i)), 2);
  return std::sqrt(squares / weights.sum());
}

double plan_epsilon(const Input& input, const Family& family, const FamilyRows& rows, const Vector& w,
                    const Shape& shape) {
  if (transport_form(input.problem, input.bound, family).exact) return family.shapes() > 0 ? 2 * std::exp(shape(0)) : 2;
  double squares = 0;
  const Vector eta = rows.design * w + rows.offset;
  for (Index i = 0; i < rows.size(); ++i) squares += std::pow(family.linked(rows.y(i), rows.trials(i)) - eta(i), 2);
  return 2 * squares / double(rows.size()) + 1e-300;
}

namespace {

constexpr const char* unbounded_likelihood =
    "; the likelihood grows without bound: a combination of features tells some of the responses for certain, so its "
    "coefficients are infinite";

Estimate cox_regression_on(const Input& input, const FamilyRows& rows, const Links& links, const std::string& start) {
  const Family& family = family_of(FamilyKind::cox);
  const Vector event = input.problem.facts.event(links.responses);
  const FamilyFit fit = fit_cox(rows, event);
  const FamilyRows counts = with_baseline(rows, event, fit.parameters);
  Candidate answer;
  answer.start = start;
  answer.parameters = fit.parameters;
  answer.objective = -fit.log_likelihood;
  answer.converged = fit.converged && !fit.unbounded;
  answer.iterations = fit.iterations;
  answer.message = fmt::format("cox regression on {} linked rows with {:.0f} events{}", links.size(), event.sum(),
                               fit.unbounded ? unbounded_likelihood : "");
  Estimate estimate;
  estimate.candidates = {answer};
  estimate.objective_name = "negative log partial likelihood";
  estimate.evaluations = fit.iterations;
  estimate.noise_sd = residual_sd(family, counts, counts.design * fit.parameters + counts.offset, rows.weights);
  estimate.covariance = fit.covariance;
  estimate.std_error_note.clear();
  estimate.epsilon = plan_epsilon(input, family, rows, fit.parameters, fit.shape);
  estimate.law.log_likelihood = fit.log_likelihood;
  return estimate;
}

}  // namespace

Estimate family_regression_on(const Input& input, const Family& family, const Links& links, const std::string& start) {
  const Index p = input.bound.parameters();
  if (links.size() < p) throw BadData(fmt::format("{} linked rows cannot determine {} parameters", links.size(), p));
  const FamilyRows rows =
      family_rows(input.problem, input.bound, links, candidates_of(input.problem, input.bound, links));
  if (family.kind() == FamilyKind::cox) return cox_regression_on(input, rows, links, start);
  const FamilyFit fit = fit_family(family, rows);
  const Vector eta = rows.design * fit.parameters + rows.offset;
  Candidate answer;
  answer.start = start;
  answer.parameters = fit.parameters;
  answer.objective = fit.deviance;
  answer.converged = fit.converged && !fit.unbounded;
  answer.iterations = fit.iterations;
  answer.message = fmt::format("{} regression on {} linked rows{}", family.name(), links.size(),
                               fit.unbounded ? unbounded_likelihood : "");
  Estimate estimate;
  estimate.candidates = {answer};
  estimate.objective_name = "deviance";
  estimate.evaluations = fit.iterations;
  estimate.noise_sd = residual_sd(family, rows, eta, rows.weights);
  estimate.covariance = fit.covariance;
  estimate.std_error_note.clear();
  estimate.epsilon = plan_epsilon(input, family, rows, fit.parameters, fit.shape);
  estimate.law.shape = named_shape(family, fit.shape, fit.shape_errors);
  estimate.law.deviance = fit.deviance;
  estimate.law.log_likelihood = fit.log_likelihood;
  return estimate;
}

}  // namespace unshuffle
