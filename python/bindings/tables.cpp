#include "tables.hpp"

#include <fmt/format.h>
#include <nanobind/eigen/dense.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "bindings.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"

namespace unshuffle::python {

namespace {

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pairs = std::vector<std::pair<Index, Index>>;
using Weights = std::vector<std::tuple<Index, Index, double>>;

/// The line of a row in a file of the same table, for messages.
constexpr long line_of(std::size_t row) { return static_cast<long>(row) + 2; }

/// Cells that are no finite numbers make a column what it would be in a file: text, with the numbers written out.
Column column_of(std::string name, const Numbers& values) {
  Column column{.name = std::move(name)};
  column.numbers.assign(values.data(), values.data() + values.size());
  const auto& numbers = column.numbers;
  column.holds_numbers = std::any_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); });
  const auto stray = std::find_if(numbers.begin(), numbers.end(), [](double v) { return !std::isfinite(v); });
  if (stray == numbers.end()) return column;
  for (const double number : numbers) {
    column.text.emplace_back();
    if (!std::isnan(number)) append_number(column.text.back(), number);
    if (std::isnan(number)) ++column.empty_cells;
  }
  const auto row = static_cast<std::size_t>(stray - numbers.begin());
  column.first_text_line = line_of(row);
  column.first_text = column.text[row];
  column.numbers.clear();
  return column;
}

Column column_of(std::string name, std::vector<std::string> cells) {
  Column column{.name = std::move(name), .text = std::move(cells)};
  column.first_text_line = line_of(0);
  column.first_text = column.text.empty() ? "" : column.text.front();
  const auto empty = std::find(column.text.begin(), column.text.end(), "");
  if (empty != column.text.end())
    column.first_empty_line = line_of(static_cast<std::size_t>(empty - column.text.begin()));
  column.empty_cells = std::count(column.text.begin(), column.text.end(), "");
  return column;
}

/// Of columns, each a pair of name and numbers or texts; `source` is its name in messages.
Table table_from(const nb::list& columns, const std::string& source) {
  Table table{.source = source, .columns = {}};
  for (const nb::handle one : columns) {
    const auto [name, values] = nb::cast<std::pair<std::string, nb::object>>(one);
    Column column = nb::isinstance<nb::list>(values) ? column_of(name, nb::cast<std::vector<std::string>>(values))
                                                     : column_of(name, nb::cast<Numbers>(values));
    if (table.find(name) != nullptr) throw BadData(fmt::format("{}: two columns are named \"{}\"", source, name));
    table.rows = Index(std::max(column.numbers.size(), column.text.size()));
    table.columns.push_back(std::move(column));
  }
  return table;
}

ColumnChoice choice_of(const nb::dict& choice) {
  using Names = std::vector<std::string>;
  ColumnChoice columns;
  const auto names = [&](const char* key) { return nb::cast<std::optional<Names>>(choice[key]); };
  columns.response = names("response").value_or(Names{});
  columns.x = names("x");
  columns.z = names("z");
  columns.weights = nb::cast<std::string>(choice["weights"]);
  columns.formula.text = nb::cast<std::string>(choice["formula"]);
  using Keys = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [left, right] : nb::cast<Keys>(choice["groups"])) columns.groups.push_back({left, right});
  using SoftKeys = std::vector<std::tuple<std::string, std::string, double>>;
  for (const auto& [left, right, agreement] : nb::cast<SoftKeys>(choice["soft_groups"]))
    columns.soft_groups.push_back({{left, right}, agreement});
  return columns;
}

Missing missing_named(const std::string& word) {
  if (word == "drop") return Missing::drop;
  if (word == "error") return Missing::error;
  if (word == "indicator") return Missing::indicator;
  throw InvalidInput(fmt::format("missing = {} must be one of drop, error, indicator", word));
}

DateOrder dates_named(const std::optional<std::string>& word) {
  if (!word) return DateOrder::unknown;
  if (*word == "day-first") return DateOrder::day_first;
  if (*word == "month-first") return DateOrder::month_first;
  throw InvalidInput(fmt::format("dates = {} must be day-first or month-first", *word));
}

Prepared prepare_tables(const nb::list& responses, const std::optional<nb::list>& features, const nb::dict& choice,
                        const std::string& missing, const std::optional<std::string>& dates, bool in_order) {
  Table left = table_from(responses, "responses");
  std::optional<Table> right;
  if (features) right = table_from(*features, "features");
  ColumnChoice columns = choice_of(choice);
  const nb::gil_scoped_release unlocked;
  Preparation rows =
      prepare(left, right ? &*right : nullptr, columns, {missing_named(missing), dates_named(dates), in_order});
  TablesAsProblem made = right ? tables_to_problem(left, *right, columns) : table_to_problem(left, columns);
  std::vector<std::string> notes = rows.notes;
  notes.insert(notes.end(), made.notes.begin(), made.notes.end());
  return {completed(std::move(made.problem)), std::move(made.columns), std::move(rows), std::move(notes)};
}

ArrayOut kept_rows(const KeptRows& kept) {
  ArrayOut rows = new_array({kept.all ? std::size_t(kept.of) : kept.rows.size()});
  for (std::size_t at = 0; at < rows.size(); ++at) rows.data()[at] = double(kept.all ? Index(at) : kept.rows[at]);
  return rows;
}

void link(Prepared& prepared, const Pairs& known, const Weights& prior) {
  std::vector<KnownPair> pairs;
  for (const auto& [response, feature] : known) pairs.push_back({response, feature});
  std::vector<PairWeight> weights;
  for (const auto& [response, feature, weight] : prior) weights.push_back({response, feature, weight});
  prepared.problem.known = in_kept_rows(pairs, prepared.rows);
  prepared.problem.prior = in_kept_rows(weights, prepared.rows);
}

}  // namespace

void bind_tables(nb::module_& module) {
  nb::class_<Prepared>(module, "Prepared", "Tables made fit for a problem, and how.")
      .def_ro("problem", &Prepared::problem)
      .def_ro("notes", &Prepared::notes)
      .def_prop_ro("x", [](const Prepared& p) { return *p.columns.x; })
      .def_prop_ro("z", [](const Prepared& p) { return *p.columns.z; })
      .def_prop_ro("is_coded",
                   [](const Prepared& p) { return !p.columns.codes.empty() || !p.columns.formula.text.empty(); })
      .def_prop_ro(
          "response_rows", [](const Prepared& p) { return kept_rows(p.rows.responses); }, nb::rv_policy::move)
      .def_prop_ro(
          "feature_rows", [](const Prepared& p) { return kept_rows(p.rows.features); }, nb::rv_policy::move)
      .def_prop_ro("response_count", [](const Prepared& p) { return p.rows.responses.of; })
      .def_prop_ro("feature_count", [](const Prepared& p) { return p.rows.features.of; })
      .def("link", link, nb::arg("known"), nb::arg("prior"),
           "Known pairs and prior odds, by rows of the tables as given.");
  module.def("prepare_tables", prepare_tables, nb::arg("responses"), nb::arg("features").none(), nb::arg("choice"),
             nb::kw_only(), nb::arg("missing"), nb::arg("dates").none(), nb::arg("in_order"),
             "Tables are lists of (name, array of float64 or list of str).");
  module.def(
      "code_rows",
      [](const Fitted& fitted, const nb::list& columns) {
        Table rows = table_from(columns, "X");
        const ColumnChoice& choice = fitted.context().columns;
        code_rows(rows, choice);
        return std::pair(moved(rows.matrix(*choice.x)), moved(rows.matrix(*choice.z)));
      },
      nb::arg("fitted"), nb::arg("columns"), "Features of complete rows as the fit coded them.");
  module.def(
      "parse_formula",
      [](const std::string& text) {
        const Formula formula = parse_formula(text);
        std::vector<std::string> response;
        for (const FormulaTerm& term : formula.response) response.push_back(formula.factors[term.front()].name);
        return std::pair(response, formula.intercept);
      },
      nb::arg("text"), "Names of the responses, and whether there is an intercept.");
}

}  // namespace unshuffle::python
