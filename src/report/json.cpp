#include "unshuffle/report/json.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/read_json.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {
namespace {

using Json = nlohmann::ordered_json;

/// Parameters that are not intercepts, by name.
Json coefficients_of(const std::vector<std::string>& names, const Vector& values) {
  Json object = Json::object();
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (!is_intercept(names[at])) object[names[at]] = values[static_cast<Index>(at)];
  }
  return object;
}

/// A number for one output, an object response → value for several, 0 without intercept.
Json intercept_of(const std::vector<std::string>& names, const Vector& values) {
  Json several = Json::object();
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (names[at] == "intercept") return values[static_cast<Index>(at)];
    if (!is_intercept(names[at])) continue;
    several[names[at].substr(0, names[at].rfind(':'))] = values[static_cast<Index>(at)];
  }
  return several.empty() ? Json(0.0) : several;
}

Json std_errors_of(const Result& fit) {
  const Vector std_errors = fit.std_errors();
  Json object = Json::object();
  for (std::size_t at = 0; at < fit.names.size(); ++at) {
    const auto row = static_cast<Index>(at);
    // JSON has no NaN; the writer turns it into null.
    object[fit.names[at]] = row < std_errors.size() ? Json(std_errors[row]) : Json(nullptr);
  }
  return object;
}

/// Rows and columns in the order of `names`.
Json covariance_of(const Result& fit) {
  if (fit.covariance.size() == 0) return nullptr;
  Json rows = Json::array();
  for (Index row = 0; row < fit.covariance.rows(); ++row) {
    const Vector values = fit.covariance.row(row);
    rows.push_back(std::vector<double>(values.begin(), values.end()));
  }
  return {{"names", fit.names}, {"rows", rows}};
}

Json intervals_of(const Result& fit) {
  const Matrix intervals = fit.intervals();
  Json object = Json::object();
  for (std::size_t at = 0; at < fit.names.size(); ++at) {
    const auto row = static_cast<Index>(at);
    object[fit.names[at]] = {intervals(row, 0), intervals(row, 1)};
  }
  return object;
}

Json alternative_of(const Result& fit, const Alternative& other) {
  // JSON has no NaN; the writer turns it into null.
  return {{"origin", other.origin},
          {"gap_nats", other.gap},
          {"objective", other.objective},
          {"coefficients", coefficients_of(fit.names, other.parameters)},
          {"intercept", intercept_of(fit.names, other.parameters)}};
}

Json what_if_of(const Result& fit) {
  Json list = Json::array();
  for (const WhatIf& other : fit.identifiable.what_if) {
    Json shift = Json::object();
    for (std::size_t at = 0; at < fit.names.size(); ++at) shift[fit.names[at]] = other.shift[Index(at)];
    list.push_back({{"assumption", other.assumption}, {"ruled_out", other.ruled_out}, {"shift", shift}});
  }
  return list;
}

Json identifiable_of(const Result& fit) {
  Json alternatives = Json::array();
  for (const Alternative& other : alternatives_of(fit)) alternatives.push_back(alternative_of(fit, other));
  return {{"verdict", name_of(fit.identifiable.verdict)},
          {"reason", fit.identifiable.reason},
          {"advice", fit.identifiable.advice},
          {"alternatives", alternatives},
          {"what_if", what_if_of(fit)}};
}

Json pieces_of(const Course& course) {
  Json out{{"processes", course.processes}};
  if (course.passes > 0) out["passes"] = course.passes;
  out["bytes_per_evaluation"] = course.bytes_per_evaluation;
  return out;
}

Json estimates_of(const std::vector<NamedEstimate>& list) {
  Json object = Json::object();
  // JSON has no NaN; the writer turns it into null.
  for (const NamedEstimate& one : list) object[one.name] = {{"value", one.value}, {"std_error", one.std_error}};
  return object;
}

/// What a Gaussian fit that nothing speaks against leaves out.
void add_law(Json& out, const FittedLaw& law) {
  const bool gaussian = law.family == FamilyKind::gaussian;
  if (gaussian && law.suggested == FamilyKind::gaussian && law.mismatch.empty()) return;
  Json made{{"family", name_of(law.family)}};
  if (law.suggested != FamilyKind::gaussian) made["suggested_family"] = name_of(law.suggested);
  if (!law.shape.empty()) made["shape"] = estimates_of(law.shape);
  if (!std::isnan(law.deviance)) made["deviance"] = law.deviance;
  if (!std::isnan(law.log_likelihood)) made["log_likelihood"] = law.log_likelihood;
  if (!law.mismatch.empty()) made["mismatch"] = estimates_of(law.mismatch);
  out["law"] = std::move(made);
}

FittedLaw law_from(const Json& object, const std::string& source) {
  FittedLaw law;
  if (!object.contains("law")) return law;
  const Json saved = json_value<Json>(object, "law", source);
  const auto word = json_value<std::string>(saved, "family", source);
  bool found = false;
  for (const auto& [name, kind] : family_words) {
    if (word != name) continue;
    law.family = kind;
    found = true;
  }
  if (!found)
    throw BadData(fmt::format("{}: the key \"family\" holds \"{}\", which this version does not know", source, word));
  const std::vector<std::string> names = family_of(law.family).shape_names();
  const bool estimated = law.family != FamilyKind::gaussian && !names.empty();
  const Json shape = estimated ? json_value<Json>(saved, "shape", source) : Json::object();
  for (const std::string& name : estimated ? names : std::vector<std::string>{}) {
    const auto value = json_value<double>(json_value<Json>(shape, name.c_str(), source), "value", source);
    if (!(value > 0)) throw BadData(fmt::format("{}: \"{}\" is {}; a number > 0 was expected", source, name, value));
    law.shape.push_back({name, value, std::nan("")});
  }
  return law;
}

/// Noise of several responses, and how links were summed.
void add_noise_and_links(Json& out, const FittedLaw& law) {
  if (!law.link_sums.empty()) out["link_sums"] = law.link_sums;
  const Matrix& covariance = law.noise_covariance;
  if (covariance.size() == 0) return;
  Json rows = Json::array();
  for (Index k = 0; k < covariance.rows(); ++k) {
    const Vector row = covariance.row(k).transpose();
    rows.push_back(std::vector<double>(row.begin(), row.end()));
  }
  out["noise_covariance"] = std::move(rows);
}

Matrix noise_covariance_from(const Json& object, std::size_t outputs, const std::string& source) {
  if (!object.contains("noise_covariance")) return {};
  const auto rows = json_value<std::vector<std::vector<double>>>(object, "noise_covariance", source);
  const bool square = rows.size() == outputs &&
                      std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row.size() == outputs; });
  Matrix made(static_cast<Index>(outputs), static_cast<Index>(outputs));
  for (std::size_t k = 0; square && k < outputs; ++k)
    made.row(Index(k)) = Eigen::Map<const Eigen::RowVectorXd>(rows[k].data(), Index(outputs));
  if (!square || !made.allFinite() || !made.isApprox(made.transpose()) ||
      Eigen::LLT<Matrix>(made).info() != Eigen::Success)
    throw BadData(fmt::format("{}: \"noise_covariance\" must be a symmetric positive definite matrix of {} rows",
                              source, outputs));
  return made;
}

void add_plan(Json& out, const Result& fit) {
  out["objective"] = fit.objective.value;
  out["objective_name"] = fit.objective.name;
  out["objective_kind"] = name_of(fit.objective.kind);
  out["transport_cost"] = fit.plan.transport_cost;
  out["epsilon"] = {{"value", fit.plan.epsilon}, {"relative", fit.plan.epsilon_relative}};
  out["marginal_error"] = fit.plan.marginal_error;
  out["compression_error"] = fit.plan.compression_error;
  out["noise_sd"] = fit.noise_sd;
  out["matched_share"] = fit.plan.matched_share;
}

void add_course(Json& out, const Result& fit) {
  const Course& course = fit.course;
  out["backend"] = name_of(fit.plan.backend);
  out["responses"] = fit.rows.responses;
  out["features"] = fit.rows.features;
  out["iterations"] = course.iterations;
  out["evaluations"] = course.evaluations;
  out["starts"] = course.candidates.size();
  out["seconds"] = course.seconds;
  out["peak_memory_mb"] = course.peak_memory_mb;
  if (course.passes > 0) out["pieces"] = pieces_of(course);
  if (course.passes == 0 && course.processes > 1) out["team"] = pieces_of(course);
  out["seed"] = course.seed;
}

Json body_of(const Result& fit, const FitContext& context) {
  Json out;
  out["status"] = name_of(fit.status);
  out["message"] = fit.message;
  out["method"] = name_of(context.estimator);
  if (!fit.choice.empty()) out["choice"] = fit.choice;
  out["chosen"] = name_of(context.chosen);
  out["model"] = context.model;
  out["coefficients"] = coefficients_of(fit.names, fit.parameters);
  out["intercept"] = intercept_of(fit.names, fit.parameters);
  out["std_errors"] = std_errors_of(fit);
  out["intervals"] = intervals_of(fit);
  out["covariance"] = covariance_of(fit);
  if (!fit.std_error_note.empty()) out["std_error_note"] = fit.std_error_note;
  add_law(out, context.law);
  add_plan(out, fit);
  add_noise_and_links(out, context.law);
  out["identifiable"] = identifiable_of(fit);
  add_course(out, fit);
  out["version"] = version;
  return out;
}

/// Options as fits of earlier versions stored them; still written for programs that read them.
constexpr std::array older_options{"tolerance", "accuracy", "unmatched", "rho1", "rho2"};

Json options_of(const Estimator& estimator) {
  Json out = Json::object();
  for (const auto& [name, value] : option_values(estimator)) {
    std::visit([&, &key = name](const auto& plain) { out[key] = plain; }, value);
  }
  return out;
}

/// Options of the estimator that was chosen that differ from those it would have by the options asked for.
Json options_found(const FitContext& context) {
  const Json asked = options_of(context.estimator), standard = options_of(*estimator_named(name_of(context.chosen))),
             chosen = options_of(context.chosen);
  Json out = Json::object();
  for (const auto& [name, value] : chosen.items())
    if (value != (asked.contains(name) ? asked[name] : standard[name])) out[name] = value;
  return out;
}

Json codes_of(const std::vector<ColumnCode>& codes) {
  Json list = Json::array();
  for (const ColumnCode& code : codes) {
    Json one{{"column", code.column},
             {"table", code.response_side ? "responses" : "features"},
             {"kind", name_of(code.kind)}};
    if (code.kind == CodeKind::category) one["levels"] = code.levels;
    if (code.kind == CodeKind::category) one["reference"] = code.levels.front();
    if (code.kind == CodeKind::date) one["dates"] = name_of(code.dates);
    if (code.indicator) one["missing"] = code.fill;
    list.push_back(std::move(one));
  }
  return list;
}

ColumnCode code_from(const Json& object, const std::string& source) {
  ColumnCode code{.column = json_value<std::string>(object, "column", source)};
  code.response_side = json_value<std::string>(object, "table", source) == "responses";
  const auto kind = json_value<std::string>(object, "kind", source);
  for (const CodeKind one : {CodeKind::number, CodeKind::truth, CodeKind::date, CodeKind::category})
    if (kind == name_of(one)) code.kind = one;
  if (kind != name_of(code.kind))
    throw BadData(fmt::format("{}: the key \"kind\" holds \"{}\", which this version does not know", source, kind));
  if (code.kind == CodeKind::category) {
    code.levels = json_value<std::vector<std::string>>(object, "levels", source);
    if (code.levels.empty()) throw BadData(fmt::format("{}: the category \"{}\" has no levels", source, code.column));
  }
  if (code.kind == CodeKind::date) {
    const auto dates = json_value<std::string>(object, "dates", source);
    for (const DateOrder order : {DateOrder::year_first, DateOrder::day_first, DateOrder::month_first})
      if (dates == name_of(order)) code.dates = order;
    if (code.dates == DateOrder::unknown)
      throw BadData(fmt::format("{}: the dates of \"{}\" are \"{}\"; year-first, day-first or month-first was expected",
                                source, code.column, dates));
  }
  code.indicator = object.contains("missing");
  if (code.indicator) code.fill = json_value<double>(object, "missing", source);
  return code;
}

Json formula_of(const FittedFormula& formula) {
  Json factors = Json::array();
  for (const FittedFactor& factor : formula.factors) {
    Json one{{"name", factor.name}, {"table", factor.response_side ? "responses" : "features"}};
    if (!factor.levels.empty()) {
      one["levels"] = factor.levels;
      one["reference"] = factor.reference;
    }
    if (!factor.numbers.empty()) one["numbers"] = factor.numbers;
    factors.push_back(std::move(one));
  }
  return {{"text", formula.text}, {"others", formula.others}, {"factors", factors}};
}

FittedFormula formula_from(const Json& object, const std::string& source) {
  using Texts = std::vector<std::string>;
  FittedFormula formula{.text = json_value<std::string>(object, "text", source)};
  formula.others = json_value<Texts>(object, "others", source);
  for (const Json& one : json_value<Json>(object, "factors", source)) {
    FittedFactor factor{.name = json_value<std::string>(one, "name", source)};
    factor.response_side = json_value<std::string>(one, "table", source) == "responses";
    if (one.contains("levels")) {
      factor.levels = json_value<Texts>(one, "levels", source);
      factor.reference = json_value<std::string>(one, "reference", source);
    }
    if (one.contains("numbers")) factor.numbers = json_value<std::vector<double>>(one, "numbers", source);
    formula.factors.push_back(std::move(factor));
  }
  require_factors(formula, source);
  return formula;
}

Json rows_of(const RowColumns& rows) {
  Json made = Json::object();
  const std::pair<const char*, const std::string*> named[] = {{"offset", &rows.offset},
                                                              {"trials", &rows.trials},
                                                              {"event", &rows.event},
                                                              {"safe", &rows.safe},
                                                              {"link_probability", &rows.link_probability},
                                                              {"wrong_rate", &rows.wrong_rate}};
  for (const auto& [key, column] : named)
    if (!column->empty()) made[key] = *column;
  if (!rows.mismatch.empty()) made["mismatch"] = rows.mismatch;
  if (rows.common_wrong_rate > 0) made["common_wrong_rate"] = rows.common_wrong_rate;
  if (rows.audit > 0) made["audit"] = rows.audit;
  return made;
}

RowColumns rows_from(const Json& columns, const std::string& source) {
  RowColumns rows;
  if (!columns.contains("rows")) return rows;
  const Json saved = json_value<Json>(columns, "rows", source);
  const auto text = [&](const char* key) {
    return saved.contains(key) ? json_value<std::string>(saved, key, source) : std::string();
  };
  rows.offset = text("offset");
  rows.trials = text("trials");
  rows.event = text("event");
  rows.safe = text("safe");
  rows.link_probability = text("link_probability");
  rows.wrong_rate = text("wrong_rate");
  if (saved.contains("mismatch")) rows.mismatch = json_value<std::vector<std::string>>(saved, "mismatch", source);
  if (saved.contains("common_wrong_rate"))
    rows.common_wrong_rate = json_value<double>(saved, "common_wrong_rate", source);
  if (saved.contains("audit")) rows.audit = json_value<double>(saved, "audit", source);
  return rows;
}

Json events_of(const EventReading& events) {
  Json made = Json::object();
  if (!events.scales.empty()) made["transform"] = events.scales;
  if (events.compensate) made["compensate"] = true;
  if (!events.gates.empty()) made["gates"] = {{"file", events.gates}, {"content", events.gates_content}};
  if (events.equal_mass_gates > 0) made["equal_mass_gates"] = events.equal_mass_gates;
  return made;
}

EventReading events_from(const Json& columns, const std::string& source) {
  EventReading events;
  if (!columns.contains("events")) return events;
  const Json saved = json_value<Json>(columns, "events", source);
  if (saved.contains("transform")) events.scales = json_value<std::vector<std::string>>(saved, "transform", source);
  if (saved.contains("compensate")) events.compensate = json_value<bool>(saved, "compensate", source);
  if (saved.contains("gates")) {
    const Json gates = json_value<Json>(saved, "gates", source);
    events.gates = json_value<std::string>(gates, "file", source);
    events.gates_content = json_value<std::string>(gates, "content", source);
  }
  if (saved.contains("equal_mass_gates"))
    events.equal_mass_gates = json_value<Index>(saved, "equal_mass_gates", source);
  return events;
}

Json context_of(const FitContext& context) {
  Json groups = Json::array();
  for (const GroupKey& key : context.columns.groups) groups.push_back({key.response_column, key.feature_column});
  Json soft_groups = Json::array();
  for (const auto& [key, agreement] : context.columns.soft_groups)
    soft_groups.push_back({key.response_column, key.feature_column, agreement});
  const std::vector<std::string> none;
  Json columns{{"response", context.columns.response},
               {"x", context.columns.x.value_or(none)},
               {"z", context.columns.z.value_or(none)},
               {"weights", context.columns.weights},
               {"groups", groups},
               {"soft_groups", soft_groups}};
  if (!(context.columns.rows == RowColumns{})) columns["rows"] = rows_of(context.columns.rows);
  if (!context.columns.files.empty()) columns["files"] = context.columns.files;
  if (!(context.columns.events == EventReading{})) columns["events"] = events_of(context.columns.events);
  if (!context.columns.codes.empty()) columns["codes"] = codes_of(context.columns.codes);
  if (!context.columns.formula.text.empty()) columns["formula"] = formula_of(context.columns.formula);
  return {{"columns", columns},
          {"one_table", context.one_table},
          {"has_intercept", context.intercept},
          {"model_state", context.model_state},
          {"options", options_of(context.estimator)}};
}

Json parse(const std::string& text, const std::string& source) {
  Json parsed = read_json<Json>(text, source);
  if (!parsed.is_object()) throw BadData(fmt::format("{}: a JSON object was expected", source));
  return parsed;
}

double number(const Json& value, const std::string& name, const std::string& source) {
  if (value.is_number()) return value.get<double>();
  throw BadData(fmt::format("{}: \"{}\" is {}; a number was expected", source, name, value.dump().substr(0, 40)));
}

NamedParameters parameters_of(const Json& object, const std::string& source) {
  NamedParameters parameters;
  const Json coefficients = json_value<Json>(object, "coefficients", source);
  if (!coefficients.is_object()) throw BadData(fmt::format("{}: \"coefficients\" is not an object", source));
  for (const auto& [name, value] : coefficients.items()) parameters.values[name] = number(value, name, source);
  const auto intercept = object.find("intercept");
  if (intercept == object.end() || intercept->is_null()) return parameters;
  if (!intercept->is_object()) {
    parameters.values["intercept"] = number(*intercept, "intercept", source);
    return parameters;
  }
  for (const auto& [name, value] : intercept->items()) {
    parameters.values[name + ":intercept"] = number(value, name, source);
  }
  return parameters;
}

/// A matrix that is no covariance would give intervals of NaN. Parameters without a standard error have NaN on the
/// diagonal, and NaN or nothing beside it.
void require_covariance(const NamedCovariance& covariance, const std::string& source) {
  constexpr double rounding = 1e-6;
  std::vector<Index> known, unknown;
  for (Index k = 0; k < covariance.matrix.rows(); ++k)
    (std::isnan(covariance.matrix(k, k)) ? unknown : known).push_back(k);
  const auto empty = [](const auto& cells) { return (cells.array().isNaN() || cells.array() == 0).all(); };
  const bool nothing_else =
      empty(covariance.matrix(unknown, Eigen::all)) && empty(covariance.matrix(Eigen::all, unknown));
  if (known.empty() && nothing_else) return;
  const Matrix matrix = covariance.matrix(known, known);
  const Vector variances = matrix.diagonal();
  if (nothing_else && variances.allFinite() && variances.minCoeff() >= 0 && matrix.allFinite()) {
    // Of correlations, so that parameters of any scale weigh alike.
    const Vector scale = variances.unaryExpr([](double v) { return v > 0 ? 1 / std::sqrt(v) : 1.0; });
    const Matrix correlation = scale.asDiagonal() * matrix * scale.asDiagonal();
    const bool symmetric = (correlation - correlation.transpose()).cwiseAbs().maxCoeff() <= rounding;
    if (symmetric && Eigen::SelfAdjointEigenSolver<Matrix>(correlation).eigenvalues().minCoeff() >= -rounding) return;
  }
  throw BadData(fmt::format(
      "{}: \"covariance\" is not the covariance of anything: it has to be symmetric and positive semidefinite",
      source));
}

/// Fits that have none, and those written before there was one, have a matrix without rows.
NamedCovariance covariance_from(const Json& object, const std::string& source) {
  NamedCovariance covariance;
  const auto found = object.find("covariance");
  if (found == object.end() || found->is_null()) return covariance;
  covariance.names = json_value<std::vector<std::string>>(*found, "names", source);
  const Json rows = json_value<Json>(*found, "rows", source);
  const std::size_t count = covariance.names.size();
  if (!rows.is_array() || rows.size() != count)
    throw BadData(fmt::format("{}: \"covariance\" needs {} rows, one for each name", source, count));
  covariance.matrix.resize(static_cast<Index>(count), static_cast<Index>(count));
  for (std::size_t row = 0; row < count; ++row) {
    if (!rows[row].is_array() || rows[row].size() != count)
      throw BadData(fmt::format("{}: row {} of \"covariance\" needs {} numbers", source, row, count));
    for (std::size_t column = 0; column < count; ++column) {
      covariance.matrix(static_cast<Index>(row), static_cast<Index>(column)) =
          rows[row][column].is_null() ? std::nan("") : number(rows[row][column], "covariance", source);
    }
  }
  require_covariance(covariance, source);
  return covariance;
}

/// Fits without standard errors have null in place of every end, those written before there were intervals nothing.
NamedIntervals intervals_from(const Json& object, const std::string& source) {
  NamedIntervals intervals;
  const auto found = object.find("intervals");
  if (found == object.end() || found->is_null()) return intervals;
  if (!found->is_object()) throw BadData(fmt::format("{}: \"intervals\" is not an object", source));
  bool any = false;
  for (const auto& [name, ends] : found->items()) {
    if (!ends.is_array() || ends.size() != 2)
      throw BadData(fmt::format("{}: the interval of \"{}\" needs two ends", source, name));
    for (const std::size_t side : {0, 1}) {
      any = any || !ends[side].is_null();
      intervals.ends[name][side] = ends[side].is_null() ? std::nan("") : number(ends[side], name, source);
    }
  }
  return any ? intervals : NamedIntervals{};
}

OptionValue option_from(const Json& value, const std::string& name) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_number(); }))
    return value.get<std::vector<double>>();
  throw BadData(
      fmt::format("the option \"{}\" holds {}, which is not of the kind expected", name, value.dump().substr(0, 40)));
}

/// With the options of the file, as far as it reads them. Files of earlier versions store a few of them separately.
Estimator estimator_of(const Json& object, const char* key, const std::string& source) {
  const auto word = json_value<std::string>(object, key, source);
  std::optional<Estimator> estimator = estimator_named(word);
  if (!estimator)
    throw BadData(fmt::format("{}: the key \"{}\" holds \"{}\", which this version does not know", source, key, word));
  Json options = Json::object();
  if (object.contains("options")) {
    options = json_value<Json>(object, "options", source);
  } else {
    for (const char* name : older_options) options[name] = object.contains(name) ? object[name] : Json();
  }
  if (std::string_view(key) == "chosen" && object.contains("chosen_options"))
    options.update(json_value<Json>(object, "chosen_options", source));
  for (const auto& [name, standard] : option_values(*estimator)) {
    const auto found = options.find(name);
    if (found == options.end() || found->is_null()) continue;
    try {
      const OptionValue value = option_from(*found, name);
      // A default may mark a value that is not given and cannot be set.
      if (text_of(value) != text_of(standard)) set_option(*estimator, name, value);
    } catch (const Error& error) {
      throw BadData(fmt::format("{}: {}", source, in_terms_of(Dialect::cpp, error.what())));
    }
  }
  return *estimator;
}

FitContext context_from(const Json& object, const std::string& source) {
  FitContext context;
  const Json columns = json_value<Json>(object, "columns", source);
  using Names = std::vector<std::string>;
  context.columns.response = json_value<Names>(columns, "response", source);
  context.columns.x = json_value<Names>(columns, "x", source);
  context.columns.z = json_value<Names>(columns, "z", source);
  context.columns.weights = json_value<std::string>(columns, "weights", source);
  for (const auto& [left, right] :
       json_value<std::vector<std::pair<std::string, std::string>>>(columns, "groups", source)) {
    context.columns.groups.push_back({left, right});
  }
  // Fits written before there were soft groups have none.
  if (columns.contains("soft_groups")) {
    using Triples = std::vector<std::tuple<std::string, std::string, double>>;
    for (const auto& [left, right, agreement] : json_value<Triples>(columns, "soft_groups", source))
      context.columns.soft_groups.push_back({{left, right}, agreement});
  }
  context.columns.rows = rows_from(columns, source);
  context.columns.events = events_from(columns, source);
  if (columns.contains("files")) context.columns.files = json_value<std::vector<std::string>>(columns, "files", source);
  if (columns.contains("codes")) {
    for (const Json& one : json_value<Json>(columns, "codes", source))
      context.columns.codes.push_back(code_from(one, source));
  }
  if (columns.contains("formula"))
    context.columns.formula = formula_from(json_value<Json>(columns, "formula", source), source);
  context.one_table = json_value<bool>(object, "one_table", source);
  context.intercept = json_value<bool>(object, "has_intercept", source);
  context.model_state = json_value<std::vector<double>>(object, "model_state", source);
  context.model = json_value<std::string>(object, "model", source);
  context.law = law_from(object, source);
  context.law.noise_covariance = noise_covariance_from(object, context.columns.response.size(), source);
  context.estimator = estimator_of(object, "method", source);
  context.chosen = object.contains("chosen") ? estimator_of(object, "chosen", source) : context.estimator;
  return context;
}

Objective objective_of(const Json& object, const std::string& source) {
  const auto word = json_value<std::string>(object, "objective_kind", source);
  for (const auto& [name, objective] : objective_words) {
    if (word == name) return objective;
  }
  throw BadData(
      fmt::format("{}: the key \"objective_kind\" holds \"{}\", which this version does not know", source, word));
}

}  // namespace

std::string to_json(const Result& fit, const FitContext& context) {
  Json out = body_of(fit, context);
  Json older = options_of(RobotRobust{});
  older.update(options_of(context.estimator));
  for (const char* name : older_options) out[name] = older[name] == -1.0 ? Json() : older[name];
  out.update(context_of(context));
  if (Json found = options_found(context); !found.empty()) out["chosen_options"] = std::move(found);
  return json_text(out, 2);
}

SavedFit fit_from_json(const std::string& text, const std::string& source) {
  const Json object = parse(text, source);
  SavedFit saved;
  saved.parameters = parameters_of(object, source);
  saved.context = context_from(object, source);
  saved.objective = objective_of(object, source);
  saved.epsilon = json_value<double>(json_value<Json>(object, "epsilon", source), "value", source);
  saved.covariance = covariance_from(object, source);
  saved.intervals = intervals_from(object, source);
  saved.noise_sd = json_value<double>(object, "noise_sd", source);
  constexpr double largest = 1e150;  // its square has to be finite
  if (saved.noise_sd < 0 || saved.noise_sd > largest)
    throw BadData(fmt::format("{}: noise_sd = {} must be at least 0 and at most {}", source, saved.noise_sd, largest));
  if (!(saved.epsilon > 0)) throw BadData(fmt::format("{}: epsilon = {} must be > 0", source, saved.epsilon));
  return saved;
}

NamedParameters parameters_from_json(const std::string& text, const std::string& source) {
  return parameters_of(parse(text, source), source);
}

Vector in_order(const NamedParameters& parameters, const std::vector<std::string>& names, const std::string& source) {
  std::map<std::string, double> left = parameters.values;
  Vector values(static_cast<Index>(names.size()));
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto found = left.find(names[at]);
    if (found == left.end() && !is_intercept(names[at])) {
      throw BadData(fmt::format("{}: the coefficient \"{}\" is missing", source, names[at]));
    }
    values[static_cast<Index>(at)] = found == left.end() ? 0.0 : found->second;
    if (found != left.end()) left.erase(found);
  }
  for (const auto& [name, value] : left) {
    // A fit without intercept says `"intercept": 0`.
    if (is_intercept(name) && value == 0) continue;
    throw BadData(fmt::format("{}: the model has no parameter \"{}\"", source, name));
  }
  return values;
}

Matrix in_order(const NamedCovariance& covariance, const std::vector<std::string>& names, const std::string& source) {
  if (covariance.names.empty()) return {};
  std::vector<Index> place;
  for (const std::string& name : names) {
    const auto found = std::find(covariance.names.begin(), covariance.names.end(), name);
    if (found == covariance.names.end())
      throw BadData(fmt::format("{}: \"covariance\" does not name the parameter \"{}\"", source, name));
    place.push_back(found - covariance.names.begin());
  }
  return covariance.matrix(place, place);
}

Matrix in_order(const NamedIntervals& intervals, const std::vector<std::string>& names, const std::string& source) {
  if (intervals.ends.empty()) return {};
  Matrix ends(static_cast<Index>(names.size()), 2);
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto found = intervals.ends.find(names[at]);
    if (found == intervals.ends.end())
      throw BadData(fmt::format("{}: \"intervals\" does not name the parameter \"{}\"", source, names[at]));
    ends.row(static_cast<Index>(at)) << found->second[0], found->second[1];
  }
  return ends;
}

}  // namespace unshuffle
