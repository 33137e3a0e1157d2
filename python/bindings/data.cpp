#include <fmt/format.h>
#include <nanobind/eigen/dense.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace unshuffle::python {

namespace {

Design design_named(const std::string& name) {
  if (name == "sensing") return Design::sensing;
  if (name == "linear") return Design::linear;
  if (name == "nonlinear") return Design::nonlinear;
  if (name == "gamma") return Design::gamma;
  throw InvalidInput(fmt::format("design = {} must be sensing, linear, nonlinear or gamma", name));
}

double not_negative(const char* name, std::optional<double> value, double left_open) {
  if (value && !(*value >= 0)) throw InvalidInput(fmt::format("{} = {} must be at least 0", name, *value));
  return value.value_or(left_open);
}

Simulation simulate_design(const std::string& design, Index n, std::optional<double> dim_x, std::optional<double> dim_z,
                           std::optional<double> shuffle, std::optional<double> snr, std::optional<double> noise,
                           double mean, double shape, std::uint64_t seed) {
  SimulateOptions options{.design = design_named(design), .rows = n};
  options.dim_x = Index(not_negative("dim_x", dim_x, -1));
  options.dim_z = Index(not_negative("dim_z", dim_z, -1));
  options.shuffle = not_negative("shuffle", shuffle, options.shuffle);
  options.noise = not_negative("noise", noise, options.noise);
  options.snr = not_negative("snr", snr, options.snr);
  options.mean = mean;
  options.shape = shape;
  options.seed = seed;
  const nb::gil_scoped_release unlocked;
  return simulate(options);
}

/// Bytes of an unknown encoding; invalid UTF-8 becomes a replacement character.
nb::str to_text(const std::string& bytes) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), "replace"));
}

nb::list to_texts(const std::vector<std::string>& all) {
  nb::list texts;
  for (const std::string& bytes : all) texts.append(to_text(bytes));
  return texts;
}

nb::dict to_dict(const Table& table) {
  nb::dict columns;
  for (const Column& column : table.columns) {
    columns[to_text(column.name)] =
        column.numeric()
            ? nb::cast(moved(Vector(Eigen::Map<const Vector>(table.numbers(column.name).data(), table.rows))))
            : nb::object(to_texts(column.text));
  }
  return columns;
}

nb::dict table_of(const cytometry::FcsFile& file, const std::vector<std::string>& transform, bool compensate,
                  const std::string& gates) {
  cytometry::EventOptions options{.compensate = compensate, .gates = gates};
  for (const std::string& text : transform) options.scales.push_back(cytometry::parse_channel_scale(text));
  Table table;
  {
    const nb::gil_scoped_release unlocked;
    table = cytometry::event_table(file, options);
  }
  return to_dict(table);
}

nb::list of_channels(const cytometry::FcsFile& file, std::string cytometry::FcsChannel::*member) {
  nb::list texts;
  for (const cytometry::FcsChannel& channel : file.channels) texts.append(to_text(channel.*member));
  return texts;
}

nb::dict keywords_of(const cytometry::FcsFile& file) {
  nb::dict keywords;
  for (const auto& [name, value] : file.keywords) keywords[to_text(name)] = to_text(value);
  return keywords;
}

}  // namespace

void bind_data(nb::module_& module) {
  using cytometry::FcsFile;
  const auto inside = nb::rv_policy::reference_internal;
  nb::class_<Simulation>(module, "Simulation",
                         "A sample whose tables have lost their links, with the true links alongside.")
      .def_prop_ro(
          "y", [](const Simulation& s) -> Eigen::Ref<const Vector> { return s.problem.y.col(0); }, inside)
      .def_prop_ro(
          "x", [](const Simulation& s) -> const Matrix& { return s.problem.x; }, inside)
      .def_prop_ro(
          "z", [](const Simulation& s) -> const Matrix& { return s.problem.z; }, inside)
      .def_prop_ro(
          "test_y", [](const Simulation& s) -> Eigen::Ref<const Vector> { return s.test.y.col(0); }, inside)
      .def_prop_ro(
          "test_x", [](const Simulation& s) -> const Matrix& { return s.test.x; }, inside)
      .def_prop_ro(
          "test_z", [](const Simulation& s) -> const Matrix& { return s.test.z; }, inside)
      .def_prop_ro(
          "coefficients", [](const Simulation& s) -> const Vector& { return s.coefficients; }, inside)
      .def_ro("permutation", &Simulation::permutation, "Row of z that belongs to each response.");
  module.def("simulate", simulate_design, nb::arg("design"), nb::arg("n") = SimulateOptions{}.rows, nb::kw_only(),
             nb::arg("dim_x") = nb::none(), nb::arg("dim_z") = nb::none(), nb::arg("shuffle") = nb::none(),
             nb::arg("snr") = nb::none(), nb::arg("noise") = nb::none(), nb::arg("mean") = 0.0, nb::arg("shape") = 0.0,
             nb::arg("seed") = 0,
             "A sample with a known truth: design sensing, linear, nonlinear or gamma. Same seed, same numbers as "
             "`unshuffle simulate`.");

  nb::class_<FcsFile>(module, "FcsFile", "A flow cytometry file: one row per event, one column per channel.")
      .def_ro("source", &FcsFile::source)
      .def_prop_ro("version", [](const FcsFile& f) { return to_text(f.version); })
      .def_prop_ro("keywords", keywords_of)
      .def_prop_ro(
          "notes", [](const FcsFile& f) { return to_texts(f.notes); },
          "One sentence each: inconsistencies in the file and how they were resolved.")
      .def_prop_ro(
          "events", [](const FcsFile& f) -> const Matrix& { return f.events; }, inside)
      .def_prop_ro("names", [](const FcsFile& f) { return of_channels(f, &cytometry::FcsChannel::name); })
      .def_prop_ro("labels", [](const FcsFile& f) { return of_channels(f, &cytometry::FcsChannel::label); })
      .def("table", table_of, nb::arg("transform") = std::vector<std::string>{}, nb::kw_only(),
           nb::arg("compensate") = false, nb::arg("gates") = "",
           "Columns by name, for pandas.DataFrame. transform: SCALE or CHANNEL=SCALE as on the command line; gates: a "
           "Gating-ML file, adds the column `gates`.");
  module.def(
      "read_fcs", [](const std::filesystem::path& path) { return cytometry::read_fcs(path.string()); }, nb::arg("path"),
      nb::call_guard<nb::gil_scoped_release>(), "An FCS 2.0, 3.0, 3.1 or 3.2 file in list mode, on the linear scale.");
}

}  // namespace unshuffle::python
