// A fit.json and the model in it, ready for use on tables.
#pragma once

#include <memory>
#include <string>

#include "unshuffle/model/model.hpp"
#include "unshuffle/report/json.hpp"

namespace unshuffle {

struct LoadedFit {
  SavedFit saved;
  std::unique_ptr<Model> model;  ///< Bound, as it was when fitted.
  Vector parameters;
  Matrix covariance;  ///< Of the parameters; empty where the fit has none.
};

/// Throws BadData naming `source` for what is no fit.
[[nodiscard]] LoadedFit load_fit(const std::string& text, const std::string& source);

/// What has to be remembered of a fit of `bound`, made with `intercept`, to these columns with these options.
[[nodiscard]] FitContext context_of(const ColumnChoice& columns, bool one_table, const Model& bound, bool intercept,
                                    const FitOptions& options);

/// Fit options that make the same lower problem as the saved fit had, at its final ε.
[[nodiscard]] FitOptions options_of(const SavedFit& saved);

}  // namespace unshuffle
