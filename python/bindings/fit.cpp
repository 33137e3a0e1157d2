#include <fmt/format.h>
#include <nanobind/eigen/dense.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "attended_work.hpp"
#include "bindings.hpp"
#include "tables.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/links/pool.hpp"
#include "unshuffle/model/registry.hpp"

namespace unshuffle::python {

namespace {

using MatrixIn = nb::DRef<const Matrix>;  // any strides
using Pairs = std::vector<std::pair<Index, Index>>;
using Weights = std::vector<std::tuple<Index, Index, double>>;

Problem make_problem(const MatrixIn& y, const MatrixIn& x, const MatrixIn& z, std::vector<std::string> y_names,
                     std::vector<std::string> x_names, std::vector<std::string> z_names, const Vector& response_weights,
                     const Vector& feature_weights, std::vector<Index> response_groups,
                     std::vector<Index> feature_groups, const Pairs& known, const Weights& prior,
                     const RowFacts& facts) {
  Problem problem{.y = y, .x = x, .z = z};
  problem.facts = facts;
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

RowOrder to_order(const std::string& hint) {
  if (hint == "rows") return RowOrder::probably_linked;
  return hint == "none" ? RowOrder::unrelated : RowOrder::unknown;
}

/// The name of an estimator and every option given to it.
struct MethodChoice {
  std::string name;
  std::vector<std::pair<std::string, OptionValue>> options;
};

Estimator to_estimator(const MethodChoice& choice) {
  std::optional<Estimator> estimator = estimator_named(choice.name);
  if (!estimator) {
    std::vector<std::string_view> names;
    for (const EstimatorEntry& entry : all_estimators()) names.push_back(entry.traits.name);
    throw InvalidInput(fmt::format("method = {} must be one of {}", choice.name, fmt::join(names, ", ")));
  }
  std::vector<std::string> given;
  for (const auto& [name, value] : choice.options) {
    set_option(*estimator, name, value);
    given.push_back(name);
  }
  validate(*estimator, given);
  return *estimator;
}

struct ModelChoice {
  std::string name;
  bool intercept;
};

Fitted fit_problem(Problem problem, const ModelChoice& model_choice, const MethodChoice& method,
                   const std::pair<std::uint64_t, int>& seed_and_threads, bool one_table, nb::object callback) {
  AttendedWork attended(std::move(callback));
  std::optional<Fitted> fitted;
  {
    const nb::gil_scoped_release unlocked;
    attended.run([&](const AttendedWork::Say& say) {
      const Estimator estimator = to_estimator(method);
      const auto model = make_model(model_choice.name, model_choice.intercept);
      require_feasible(problem, *model->bound_to(problem), estimator);
      const Execution execution{.seed = seed_and_threads.first,
                                .threads = seed_and_threads.second,
                                .progress = say,
                                .dialect = Dialect::python};
      fitted = fit(std::move(problem), *model, estimator, execution);
      fitted->remember_columns(fitted->context().columns, one_table);
    });
  }
  attended.rethrow();
  return std::move(*fitted);
}

/// Every estimator with its options, as declared.
nb::list estimators() {
  nb::list all;
  for (const EstimatorEntry& entry : all_estimators()) {
    nb::list options;
    for (const OptionInfo& info : entry.options) {
      nb::dict option;
      option["name"] = info.name;
      option["help"] = info.help;
      option["kind"] = info.kind;
      option["constraint"] = info.constraint;
      option["words"] = info.words;
      option["default"] = info.standard;
      options.append(option);
    }
    nb::dict one;
    one["name"] = std::string(entry.traits.name);
    one["help"] = std::string(entry.traits.help);
    one["options"] = options;
    all.append(one);
  }
  return all;
}

/// One row per link of each set: set, response row, feature row.
ArrayOut sample_links(const Fitted& fitted, Index samples, std::uint64_t seed) {
  std::vector<LinkSet> sets;
  {
    const nb::gil_scoped_release unlocked;
    sets = fitted.sample_links(samples, seed);
  }
  std::size_t count = 0;
  for (const LinkSet& set : sets) count += set.size();
  ArrayOut links = new_array({count, 3});
  double* at = links.data();
  for (std::size_t k = 0; k < sets.size(); ++k) {
    for (const KnownPair& pair : sets[k]) {
      *at++ = double(k);
      *at++ = double(pair.response_row);
      *at++ = double(pair.feature_row);
    }
  }
  return links;
}

/// One row per pair: response row, feature row, probability; and the rows that stayed without a partner.
nb::tuple match_rows(const Fitted& fitted) {
  Matching matching;
  {
    const nb::gil_scoped_release unlocked;
    matching = fitted.match();
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
  std::vector<KnownPair> known;
  for (const auto& [response, feature] : truth) known.push_back({response, feature});
  return fitted.report(std::move(known));
}

/// One row per outer iteration: start, iteration, epsilon, objective, gradient norm, marginal error, inner iterations.
ArrayOut trace_of(const Fitted& fitted) {
  ArrayOut out = new_array({fitted.result().course.trace.size(), 7});
  double* at = out.data();
  for (const TracePoint& point : fitted.result().course.trace) {
    for (const double value : {double(point.start), double(point.iteration), point.epsilon, point.objective,
                               point.gradient_norm, point.marginal_error, double(point.inner_iterations)}) {
      *at++ = value;
    }
  }
  return out;
}

ArrayOut predict(const Fitted& fitted, const MatrixIn& x, const MatrixIn& z, const RowFacts& facts) {
  Matrix predictions;
  {
    const nb::gil_scoped_release unlocked;
    predictions = fitted.predict(x, z, facts);
  }
  return moved(std::move(predictions));
}

/// Predictions, their standard errors, and the ends of the intervals of new responses.
std::tuple<ArrayOut, ArrayOut, ArrayOut, ArrayOut> predict_with_intervals(const Fitted& fitted, const MatrixIn& x,
                                                                          const MatrixIn& z, double level,
                                                                          const RowFacts& facts) {
  Predictions predictions;
  Predictions::Interval interval;
  {
    const nb::gil_scoped_release unlocked;
    predictions = fitted.predict_with_errors(x, z, facts);
    interval = fitted.predict_interval(x, z, level, facts);
  }
  return {moved(std::move(predictions.values)), moved(std::move(predictions.std_errors)),
          moved(std::move(interval.low)), moved(std::move(interval.high))};
}

void bind_problem(nb::module_& module) {
  nb::class_<RowFacts>(module, "RowFacts", "What is known of rows beside their values; empty: nothing.")
      .def(nb::init<>())
      .def_rw("response_offset", &RowFacts::response_offset)
      .def_rw("feature_offset", &RowFacts::feature_offset)
      .def_rw("trials", &RowFacts::trials)
      .def_rw("event", &RowFacts::event)
      .def_rw("mismatch", &RowFacts::mismatch)
      .def_rw("mismatch_names", &RowFacts::mismatch_names)
      .def_rw("wrong_rate", &RowFacts::wrong_rate)
      .def_rw("audit", &RowFacts::audit);
  nb::class_<Problem>(module, "Problem", "Two tables whose row links are lost.")
      .def(
          "__init__",
          [](Problem* self, const MatrixIn& y, const MatrixIn& x, const MatrixIn& z, std::vector<std::string> y_names,
             std::vector<std::string> x_names, std::vector<std::string> z_names, const Vector& response_weights,
             const Vector& feature_weights, std::vector<Index> response_groups, std::vector<Index> feature_groups,
             const Pairs& known, const Weights& prior, const RowFacts& facts) {
            new (self) Problem(make_problem(y, x, z, std::move(y_names), std::move(x_names), std::move(z_names),
                                            response_weights, feature_weights, std::move(response_groups),
                                            std::move(feature_groups), known, prior, facts));
          },
          nb::arg("y"), nb::arg("x"), nb::arg("z"), nb::kw_only(), nb::arg("y_names"), nb::arg("x_names"),
          nb::arg("z_names"), nb::arg("response_weights"), nb::arg("feature_weights"), nb::arg("response_groups"),
          nb::arg("feature_groups"), nb::arg("known"), nb::arg("prior"), nb::arg("facts") = RowFacts{})
      .def_ro("x_names", &Problem::x_names)
      .def_ro("z_names", &Problem::z_names)
      .def_prop_rw(
          "hint",
          [](const Problem& p) {
            return p.order == RowOrder::unrelated ? "none" : p.order_is_a_hint() ? "rows" : "auto";
          },
          [](Problem& p, const std::string& hint) { p.order = to_order(hint); })
      .def_ro("y_names", &Problem::y_names);
}

void bind_fitted(nb::module_& module) {
  nb::class_<Fitted>(module, "Fitted", "A fit with everything needed to use it.")
      .def_static(
          "from_json", [](const std::string& text) { return Fitted::from_json(text, "fit"); }, nb::arg("text"))
      .def_prop_ro("converged", [](const Fitted& f) { return f.result().status == Status::converged; })
      .def_prop_ro("message", [](const Fitted& f) { return f.result().message; })
      .def_prop_ro("names", [](const Fitted& f) { return f.result().names; })
      .def_prop_ro(
          "parameters", [](const Fitted& f) { return f.parameters(); }, nb::rv_policy::move)
      .def_prop_ro(
          "std_errors", [](const Fitted& f) { return f.result().std_errors(); }, nb::rv_policy::move)
      .def_prop_ro("trace", trace_of, nb::rv_policy::move)
      .def(
          "intervals", [](const Fitted& f, double level) { return f.intervals(level); }, nb::arg("level") = 0.95,
          nb::rv_policy::move)
      .def("summary", &Fitted::summary)
      .def("to_json", &Fitted::to_json)
      .def("match", match_rows)
      .def("sample_links", sample_links, nb::arg("samples"), nb::arg("seed"))
      .def_prop_ro(
          "covariance", [](const Fitted& f) { return f.result().covariance; }, nb::rv_policy::move)
      .def(
          "remember",
          [](Fitted& f, const Prepared& prepared, bool one_table) { f.remember_columns(prepared.columns, one_table); },
          nb::arg("prepared"), nb::arg("one_table"), "How the tables of the fit were prepared, for to_json.")
      .def("predict", predict, nb::arg("x"), nb::arg("z"), nb::arg("facts") = RowFacts{})
      .def("predict_with_intervals", predict_with_intervals, nb::arg("x"), nb::arg("z"), nb::arg("level") = 0.95,
           nb::arg("facts") = RowFacts{})
      .def("report", report, nb::arg("truth"), "One HTML page.");
}

}  // namespace

void bind_fit(nb::module_& module) {
  bind_problem(module);
  bind_fitted(module);
  module.def("estimators", estimators);
  module.def(
      "fit",
      [](const Problem& problem, const std::string& model, bool intercept, const std::string& method,
         const std::vector<std::pair<std::string, OptionValue>>& options,
         const std::pair<std::uint64_t, int>& seed_and_threads, bool one_table, nb::object progress) {
        return fit_problem(problem, {model, intercept}, {method, options}, seed_and_threads, one_table,
                           std::move(progress));
      },
      nb::arg("problem"), nb::kw_only(), nb::arg("model"), nb::arg("intercept"), nb::arg("method"), nb::arg("options"),
      nb::arg("seed_and_threads"), nb::arg("one_table"), nb::arg("progress") = nb::none());
  module.def(
      "pool",
      [](const MatrixIn& estimates, const std::vector<Matrix>& covariances, double complete_freedom, double level) {
        Pooled pooled = pool(estimates, covariances, complete_freedom);
        Matrix ends = pooled.intervals(level);
        return nb::make_tuple(moved(std::move(pooled.estimates)), moved(std::move(pooled.covariance)),
                              moved(std::move(pooled.freedom)), moved(std::move(pooled.information_lost)),
                              moved(std::move(ends)));
      },
      nb::arg("estimates"), nb::arg("covariances"), nb::arg("complete_freedom"), nb::arg("level"));
  module.def("is_intercept", is_intercept, nb::arg("name"));
}

}  // namespace unshuffle::python
