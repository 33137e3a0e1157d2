// A fit as a file: written by `fit`, read back by `predict`, `match`, `gradient --at` and `fit --start`.
// The keys are those of docs/json.md.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/estimators/result.hpp"
#include "unshuffle/families/fitted_law.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What was fitted and how, as needed to apply the fit to other tables.
struct FitContext {
  Estimator estimator;  ///< As requested.
  Estimator chosen;     ///< By `auto`; else the same.
  std::string model;    ///< As typed: "spline:5".
  ColumnChoice columns;
  bool one_table = false;
  bool intercept = true;
  std::vector<double> model_state;  ///< Of the bound model; see model_state().
  FittedLaw law{};                  ///< Of the responses.
};

/// Parameters by name. A file may omit intercepts, which are then 0.
struct NamedParameters {
  std::map<std::string, double> values;
};

/// Their covariance, rows and columns in the order of `names`; no names: there is none.
struct NamedCovariance {
  std::vector<std::string> names;
  Matrix matrix;
};

/// Both ends of 95 % intervals by name, NaN where there is none; fits without any have no names here.
struct NamedIntervals {
  std::map<std::string, std::array<double, 2>> ends;
};

/// The contents of a fit.json.
struct SavedFit {
  FitContext context;
  NamedParameters parameters;
  Objective objective = Objective::transport;
  double epsilon = 0;  ///< In the unit of the cost.
  NamedCovariance covariance;
  NamedIntervals intervals;
  double noise_sd = 0;
};

/// A table in the style of statsmodels.
[[nodiscard]] std::string summary_of(const Result& result, const FitContext& context);

/// The same as one JSON object, by the names of docs/json.md.
[[nodiscard]] std::string to_json(const Result& result, const FitContext& context);

/// Throws BadData naming `source` and the key that is missing or of the wrong kind.
[[nodiscard]] SavedFit fit_from_json(const std::string& text, const std::string& source);

/// Reads `coefficients` and, where given, `intercept`: a fit.json or a file written by hand.
[[nodiscard]] NamedParameters parameters_from_json(const std::string& text, const std::string& source);

/// The parameters in the model's order; throws BadData for names that are missing, or that the model does not have.
[[nodiscard]] Vector in_order(const NamedParameters& parameters, const std::vector<std::string>& names,
                              const std::string& source);

/// Likewise; empty when there is none.
[[nodiscard]] Matrix in_order(const NamedCovariance& covariance, const std::vector<std::string>& names,
                              const std::string& source);

/// Likewise, a row each.
[[nodiscard]] Matrix in_order(const NamedIntervals& intervals, const std::vector<std::string>& names,
                              const std::string& source);

}  // namespace unshuffle
