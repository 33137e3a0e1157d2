#include "unshuffle/fitted/fitted.hpp"

#include <fmt/format.h>

#include <cmath>

#include "fitted/sample_links.hpp"
#include "objective/transport_form.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/files.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "unshuffle/report/html.hpp"

namespace unshuffle {

Fitted::Fitted(Result result, FitContext context, std::shared_ptr<const Model> bound,
               std::shared_ptr<const Problem> problem)
    : result_(std::move(result)),
      context_(std::move(context)),
      bound_(std::move(bound)),
      problem_(std::move(problem)) {}

Fitted Fitted::from_json(const std::string& text, const std::string& source) {
  SavedFit saved = fit_from_json(text, source);
  const FitContext& context = saved.context;
  std::shared_ptr<const Model> bound;
  try {
    bound = restore_model(context.model, context.intercept, *context.columns.x, *context.columns.z,
                          context.columns.response, context.model_state);
  } catch (const Error& error) {
    throw BadData(fmt::format("{}: {}", source, error.what()));
  }
  Result result;
  result.names = bound->parameter_names();
  result.parameters = in_order(saved.parameters, result.names, source);
  result.covariance = in_order(saved.covariance, result.names, source);
  if (const Matrix ends = in_order(saved.intervals, result.names, source); ends.size() > 0) {
    result.margins.resize(ends.rows(), 2);
    result.margins << result.parameters - ends.col(0), ends.col(1) - result.parameters;
  }
  result.noise_sd = saved.noise_sd;
  result.objective.kind = saved.objective;
  result.plan.epsilon = saved.epsilon;
  return {std::move(result), std::move(saved.context), std::move(bound)};
}

Fitted Fitted::load(const std::string& path) { return from_json(read_file(path), path); }

void Fitted::save(const std::string& path) const { write_whole_file(path, to_json()); }

std::vector<Coefficient> Fitted::coefficients(double level) const {
  const Vector errors = result_.std_errors();
  const Matrix ends = intervals(level);
  std::vector<Coefficient> made;
  for (Index k = 0; k < result_.parameters.size(); ++k) {
    made.push_back({result_.names[std::size_t(k)], result_.parameters(k), k < errors.size() ? errors(k) : std::nan(""),
                    ends(k, 0), ends(k, 1)});
  }
  return made;
}

Predictions Fitted::predict_eta(const MatrixRef& x, const MatrixRef& z, const RowFacts& facts, bool with_errors) const {
  const RowColumns& columns = context_.columns.rows;
  const auto require = [&](const std::string& column, bool given, std::string_view name) {
    if (column.empty() || given) return;
    throw InvalidInput(fmt::format("the fit was made with {} \"{}\", so its predictions need it", name, column));
  };
  require(columns.offset, facts.response_offset.size() + facts.feature_offset.size() > 0, "the offset");
  require(columns.trials, facts.trials.size() > 0, "the trials");
  if (with_errors && result_.covariance.size() == 0)
    throw InvalidInput("the fit has no standard errors, so its predictions have no intervals; its summary says why");
  Predictions made = with_errors ? unshuffle::predict_with_errors(*bound_, x, z, result_.parameters, result_.covariance)
                                 : Predictions{predict_linked(*bound_, x, z, result_.parameters), {}};
  for (const Vector* offset : {&facts.response_offset, &facts.feature_offset})
    if (offset->size() > 0) made.values.col(0) += *offset;
  return made;
}

Matrix Fitted::predict(const MatrixRef& x, const MatrixRef& z, const RowFacts& facts) const {
  const Predictions eta = predict_eta(x, z, facts, false);
  if (family().kind() == FamilyKind::gaussian) return eta.values;
  return on_scale_of_response(family(), eta, facts.trials).values;
}

Predictions Fitted::predict_with_errors(const MatrixRef& x, const MatrixRef& z, const RowFacts& facts) const {
  Predictions eta = predict_eta(x, z, facts, true);
  if (family().kind() == FamilyKind::gaussian) return eta;
  return on_scale_of_response(family(), eta, facts.trials);
}

Vector Fitted::noise_sds() const {
  const Matrix& covariance = context_.law.noise_covariance;
  if (covariance.size() > 0) return covariance.diagonal().cwiseSqrt();
  return Vector::Constant(Index(context_.columns.response.size()), result_.noise_sd);
}

Predictions::Interval Fitted::predict_interval(const MatrixRef& x, const MatrixRef& z, double level,
                                               const RowFacts& facts) const {
  if (family().kind() == FamilyKind::cox) {
    throw InvalidInput(
        "a fit by cox has no intervals for new times, whose baseline hazard may have any shape; predictions are "
        "hazards "
        "relative to a row whose features are 0, and have standard errors");
  }
  const Predictions eta = predict_eta(x, z, facts, true);
  if (family().kind() == FamilyKind::gaussian) return eta.interval(noise_sds(), level);
  return interval_of_responses(family(), context_.law.log_shape(), eta, facts.trials, level);
}

EvaluatorOptions Fitted::plan_options(const Problem& problem) const {
  EvaluatorOptions plan =
      unshuffle::plan_options(context_.chosen, double(problem.responses()), double(problem.features()));
  plan.epsilon = {.value = result_.plan.epsilon, .relative = false};
  plan.objective = result_.objective.kind;
  return plan;
}

Matching Fitted::match(LinkRows rows) const {
  if (!problem_) throw InvalidInput("the fitted rows are not available; pass the tables to match");
  if (result_.link_probabilities.size() == 0) return match(*problem_, rows);
  const TransportForm form = transport_form(problem_, bound_, context_.law);
  return match_beside_order(*form.problem, *form.model, result_.parameters, plan_options(*problem_),
                            result_.link_probabilities);
}

Matching Fitted::match(const Problem& problem, LinkRows rows) const {
  const TransportForm form = transport_form(std::make_shared<const Problem>(completed(problem)), bound_, context_.law);
  Evaluator evaluator(*form.problem, *form.model, plan_options(*form.problem));
  require_finite_costs(evaluator, result_.parameters);
  return unshuffle::match(evaluator, *form.problem, *form.model, result_.parameters, rows);
}

std::vector<LinkSet> Fitted::sample_links(Index samples, std::uint64_t seed) const {
  if (!problem_) throw InvalidInput("the fitted rows are not available; pass the tables to draw links of");
  return sample_links(*problem_, samples, seed);
}

std::vector<LinkSet> Fitted::sample_links(const Problem& problem, Index samples, std::uint64_t seed) const {
  if (samples < 1) throw InvalidInput(fmt::format("{} = {} must be at least 1", option("samples"), samples));
  return LinkSampler(completed(problem), *bound_, result_, context_, seed).draw(samples);
}

std::string Fitted::summary() const { return summary_of(result_, context_); }

std::string Fitted::to_json() const { return unshuffle::to_json(result_, context_); }

std::string Fitted::report(std::vector<KnownPair> truth) const {
  const Matching matching = match();
  const EvaluatorOptions plan = plan_options(*problem_);
  const TransportForm form = transport_form(problem_, bound_, context_.law);
  return html_report({result_, context_, *form.problem, *form.model, plan, matching, std::move(truth)});
}

void Fitted::remember_columns(ColumnChoice columns, bool one_table) {
  context_.columns = std::move(columns);
  context_.one_table = one_table;
}

}  // namespace unshuffle
