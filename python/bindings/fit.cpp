#include <fmt/format.h>
#include <nanobind/eigen/dense.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "options.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/predict.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/objective/feasible.hpp"
#include "unshuffle/report/html.hpp"
#include "unshuffle/report/saved.hpp"

namespace unshuffle::python {

namespace {

using MatrixIn = nb::DRef<const Matrix>;  // any strides
using Pairs = std::vector<std::pair<Index, Index>>;
using Weights = std::vector<std::tuple<Index, Index, double>>;

/// Calls the user's function now and then, and lets Ctrl-C through; whatever Python raises ends the fit. A method that
/// runs others is told to stop by each of them again.
class Progress {
 public:
  explicit Progress(nb::object callback) : callback_(std::move(callback)) {}

  bool operator()(double done, double total) {
    if (stopped_) return false;
    const nb::gil_scoped_acquire locked;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      stopped_ = !callback_.is_none() && callback_(done, total).is(nb::bool_(false));
    } catch (...) {
      failure_ = std::current_exception();
      stopped_ = true;
    }
    return !stopped_;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  nb::object callback_;
  std::exception_ptr failure_;
  bool stopped_ = false;
};

/// A fit with all that is needed to use it.
struct Fitted {
  Problem problem;
  std::unique_ptr<Model> bound;
  FitOptions options;
  FitContext context;
  Fit fit;
};

Problem make_problem(const MatrixIn& y, const MatrixIn& x, const MatrixIn& z, std::vector<std::string> y_names,
                     std::vector<std::string> x_names, std::vector<std::string> z_names, const Vector& response_weights,
                     const Vector& feature_weights, std::vector<Index> response_groups,
                     std::vector<Index> feature_groups, const Pairs& known, const Weights& prior) {
  Problem problem{.y = y, .x = x, .z = z};
  problem.response_weights = response_weights;
  problem.feature_weights = feature_weights;
  problem.response_groups = std::move(response_groups);
  problem.feature_groups = std::move(feature_groups);
  for (const auto& [response, feature] : known) problem.known.push_back({response, feature});
  for (const auto& [response, feature, weight] : prior) problem.prior.push_back({response, feature, weight});
  problem.y_names = std::move(y_names);
  problem.x_names = std::move(x_names);
  problem.z_names = std::move(z_names);
  return completed(std::move(problem));
}

Fitted fit_problem(Problem problem, const std::string& model_name, bool intercept, bool one_table, FitOptions options,
                   nb::object callback) {
  Progress progress(std::move(callback));
  Fitted fitted;
  {
    const nb::gil_scoped_release unlocked;
    const auto model = make_model(model_name, intercept);
    fitted.problem = std::move(problem);
    fitted.bound = model->bound_to(fitted.problem);
    require_estimable(fitted.problem, *fitted.bound);
    require_memory(fitted.problem, *fitted.bound, options);
    fitted.options = options;
    options.progress = [&](double done, double total) { return progress(done, total); };
    fitted.context =
        context_of({.response = fitted.problem.y_names, .x = fitted.problem.x_names, .z = fitted.problem.z_names},
                   one_table, *fitted.bound, intercept, options);
    fitted.fit = fit(fitted.problem, *model, options);
  }
  progress.rethrow();
  return fitted;
}

/// One row per pair: response row, feature row, probability; and the rows that stayed without a partner.
nb::tuple match_rows(const Fitted& fitted) {
  Matching matching;
  {
    const nb::gil_scoped_release unlocked;
    matching = match(fitted.fit, fitted.problem, *fitted.bound, fitted.options);
  }
  ArrayOut pairs = new_array({matching.pairs.size(), 3});
  double* at = pairs.data();
  for (const Match& pair : matching.pairs) {
    *at++ = double(pair.response_row);
    *at++ = double(pair.feature_row);
    *at++ = pair.probability;
  }
  return nb::make_tuple(pairs, matching.unmatched_responses, matching.unmatched_features);
}

std::string report(const Fitted& fitted, const Pairs& truth) {
  const nb::gil_scoped_release unlocked;
  const Matching matching = match(fitted.fit, fitted.problem, *fitted.bound, fitted.options);
  std::vector<KnownPair> known;
  for (const auto& [response, feature] : truth) known.push_back({response, feature});
  return html_report(
      {fitted.fit, fitted.context, fitted.problem, *fitted.bound, fitted.options, matching, std::move(known)});
}

/// One row per outer iteration: start, iteration, epsilon, objective, gradient norm, marginal error, inner iterations.
ArrayOut trace_of(const Fitted& fitted) {
  ArrayOut out = new_array({fitted.fit.trace.size(), 7});
  double* at = out.data();
  for (const TracePoint& point : fitted.fit.trace) {
    for (const double value : {double(point.start), double(point.iteration), point.epsilon, point.objective,
                               point.gradient_norm, point.marginal_error, double(point.inner_iterations)}) {
      *at++ = value;
    }
  }
  return out;
}

ArrayOut predict(const std::string& json, const MatrixIn& x, const MatrixIn& z) {
  const LoadedFit loaded = load_fit(json, "fit");
  Matrix predictions;
  {
    const nb::gil_scoped_release unlocked;
    predictions = predict_linked(*loaded.model, x, z, loaded.parameters);
  }
  return moved(std::move(predictions));
}

/// Predictions, their standard errors, and the ends of the intervals of new responses.
std::tuple<ArrayOut, ArrayOut, ArrayOut, ArrayOut> predict_with_intervals(const std::string& json, const MatrixIn& x,
                                                                          const MatrixIn& z) {
  const LoadedFit loaded = load_fit(json, "fit");
  if (loaded.covariance.size() == 0) throw InvalidInput("the fit has no standard errors; summary() says why");
  Predictions predictions;
  Predictions::Interval interval;
  {
    const nb::gil_scoped_release unlocked;
    predictions = predict_with_errors(*loaded.model, x, z, loaded.parameters, loaded.covariance);
    interval = predictions.interval(loaded.saved.noise_sd);
  }
  return {moved(std::move(predictions.values)), moved(std::move(predictions.std_errors)),
          moved(std::move(interval.low)), moved(std::move(interval.high))};
}

}  // namespace

void bind_fit(nb::module_& module) {
  bind_options(module);
  nb::class_<Problem>(module, "Problem", "Two tables whose row links are lost.")
      .def(
          "__init__",
          [](Problem* self, const MatrixIn& y, const MatrixIn& x, const MatrixIn& z, std::vector<std::string> y_names,
             std::vector<std::string> x_names, std::vector<std::string> z_names, const Vector& response_weights,
             const Vector& feature_weights, std::vector<Index> response_groups, std::vector<Index> feature_groups,
             const Pairs& known, const Weights& prior) {
            new (self) Problem(make_problem(y, x, z, std::move(y_names), std::move(x_names), std::move(z_names),
                                            response_weights, feature_weights, std::move(response_groups),
                                            std::move(feature_groups), known, prior));
          },
          nb::arg("y"), nb::arg("x"), nb::arg("z"), nb::kw_only(), nb::arg("y_names"), nb::arg("x_names"),
          nb::arg("z_names"), nb::arg("response_weights"), nb::arg("feature_weights"), nb::arg("response_groups"),
          nb::arg("feature_groups"), nb::arg("known"), nb::arg("prior"))
      .def_ro("x_names", &Problem::x_names)
      .def_ro("z_names", &Problem::z_names)
      .def_ro("y_names", &Problem::y_names);
  nb::class_<Fitted>(module, "Fitted", "A fit with all that is needed to use it.")
      .def_prop_ro("converged", [](const Fitted& f) { return f.fit.status == Fit::Status::converged; })
      .def_prop_ro("message", [](const Fitted& f) { return f.fit.message; })
      .def_prop_ro("names", [](const Fitted& f) { return f.fit.names; })
      .def_prop_ro(
          "parameters", [](const Fitted& f) { return f.fit.parameters; }, nb::rv_policy::move)
      .def_prop_ro(
          "std_errors", [](const Fitted& f) { return f.fit.std_errors(); }, nb::rv_policy::move)
      .def_prop_ro("trace", trace_of, nb::rv_policy::move)
      .def("summary", [](const Fitted& f) { return f.fit.summary(); })
      .def("to_json", [](const Fitted& f) { return to_json(f.fit, f.context); })
      .def("match", match_rows)
      .def("report", report, nb::arg("truth"), "One HTML page.");
  module.def("fit", fit_problem, nb::arg("problem"), nb::kw_only(), nb::arg("model"), nb::arg("intercept"),
             nb::arg("one_table"), nb::arg("options"), nb::arg("progress") = nb::none());
  module.def("predict", predict, nb::arg("json"), nb::arg("x"), nb::arg("z"));
  module.def("predict_with_intervals", predict_with_intervals, nb::arg("json"), nb::arg("x"), nb::arg("z"));
  module.def("is_intercept", is_intercept, nb::arg("name"));
}

}  // namespace unshuffle::python
