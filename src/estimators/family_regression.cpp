#include "estimators/family_regression.hpp"

#include <fmt/format.h>

#include <cmath>

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
  const bool in_order = std::holds_alternative<Mixture>(estimator) || std::holds_alternative<Auto>(estimator);
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

}  // namespace

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

Estimate family_regression_on(const Input& input, const Family& family, const Links& links, const std::string& start) {
  const Index p = input.bound.parameters();
  if (links.size() < p) throw BadData(fmt::format("{} linked rows cannot determine {} parameters", links.size(), p));
  const FamilyRows rows =
      family_rows(input.problem, input.bound, links, candidates_of(input.problem, input.bound, links));
  const FamilyFit fit = fit_family(family, rows);
  const Vector eta = rows.design * fit.parameters + rows.offset;
  Candidate answer;
  answer.start = start;
  answer.parameters = fit.parameters;
  answer.objective = fit.deviance;
  answer.converged = fit.converged && !fit.unbounded;
  answer.iterations = fit.iterations;
  answer.message = fmt::format("{} regression on {} linked rows", family.name(), links.size());
  if (fit.unbounded) {
    answer.message +=
        "; the likelihood grows without bound: a combination of features tells some of the responses for certain, so "
        "its coefficients are infinite";
  }
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
