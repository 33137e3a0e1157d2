#include "unshuffle/report/saved.hpp"

#include <fmt/format.h>

#include "unshuffle/core/error.hpp"
#include "unshuffle/model/registry.hpp"

namespace unshuffle {

LoadedFit load_fit(const std::string& text, const std::string& source) {
  LoadedFit loaded;
  loaded.saved = fit_from_json(text, source);
  const SavedFit& saved = loaded.saved;
  try {
    loaded.model = restore_model(saved.model, saved.context.intercept, *saved.context.columns.x,
                                 *saved.context.columns.z, saved.context.columns.response, saved.context.model_state);
  } catch (const Error& error) {
    throw BadData(fmt::format("{}: {}", source, error.what()));
  }
  const std::vector<std::string> names = loaded.model->parameter_names();
  loaded.parameters = in_order(saved.parameters, names, source);
  loaded.covariance = in_order(saved.covariance, names, source);
  return loaded;
}

FitContext context_of(const ColumnChoice& columns, bool one_table, const Model& bound, bool intercept,
                      const FitOptions& options) {
  return {.columns = columns,
          .one_table = one_table,
          .intercept = intercept,
          .model_state = model_state(bound),
          .tolerance = options.tolerance,
          .accuracy = options.accuracy,
          .unmatched = options.unmatched,
          .rho1 = options.rho1,
          .rho2 = options.rho2};
}

FitOptions options_of(const SavedFit& saved) {
  FitOptions options;
  options.method = saved.method;
  options.objective = saved.objective;
  options.epsilon = {.value = saved.epsilon, .relative = false};
  options.tolerance = saved.context.tolerance;
  options.accuracy = saved.context.accuracy;
  options.unmatched = saved.context.unmatched;
  options.rho1 = saved.context.rho1;
  options.rho2 = saved.context.rho2;
  return options;
}

}  // namespace unshuffle
