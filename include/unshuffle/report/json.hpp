// A fit as a file: written by `fit`, read back by `predict`, `match`, `gradient --at` and `fit --start`.
// The keys are those of docs/json.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "unshuffle/estimators/methods.hpp"
#include "unshuffle/fitted/fit.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle {

/// What a fit has to remember of the tables and the model to be used again on others.
struct FitContext {
  ColumnChoice columns;
  bool one_table = false;
  bool intercept = true;
  std::vector<double> model_state;  ///< Of the bound model; see model_state().
  double tolerance = 1e-9;          ///< As in FitOptions, from here on.
  double accuracy = 1e-10;
  double unmatched = 0.2;
  double rho1 = -1;
  double rho2 = -1;
};

/// Parameters by name. A file may leave intercepts out; they are then 0.
struct NamedParameters {
  std::map<std::string, double> values;
};

/// Their covariance, rows and columns in the order of `names`; no names: there is none.
struct NamedCovariance {
  std::vector<std::string> names;
  Matrix matrix;
};

/// What a fit.json says.
struct SavedFit {
  FitContext context;
  NamedParameters parameters;
  std::string model;
  Method method = Method::robot;
  Objective objective = Objective::transport;
  double epsilon = 0;  ///< In the unit of the cost.
  NamedCovariance covariance;
  double noise_sd = 0;
};

[[nodiscard]] std::string to_json(const Fit& fit, const FitContext& context);

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

[[nodiscard]] const char* name_of(Objective objective);
[[nodiscard]] const char* name_of(Backend backend);
[[nodiscard]] const char* name_of(Fit::Status status);

[[nodiscard]] const char* name_of(Verdict verdict);

/// Competing solutions: the judged ones, or where nothing was judged the optima that other starts ended in and that
/// differ from the best one; best first.
[[nodiscard]] std::vector<Alternative> alternatives_of(const Fit& fit);

}  // namespace unshuffle
