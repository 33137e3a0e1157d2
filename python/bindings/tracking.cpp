#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "unshuffle/tracking/evaluation.hpp"

namespace nb = nanobind;

namespace unshuffle::python {

namespace {

nb::dict to_dict(const tracking::Counts& counts) {
  nb::dict named;
  for (const tracking::NamedNumber& number : tracking::numbers_of(counts)) {
    named[number.name] =
        number.is_count ? nb::object(nb::int_(long(number.value))) : nb::object(nb::float_(number.value));
  }
  return named;
}

std::pair<nb::dict, std::vector<std::string>> evaluate(const std::filesystem::path& truth,
                                                       const std::filesystem::path& results,
                                                       const std::string& benchmark) {
  tracking::FileEvaluation evaluation;
  {
    const nb::gil_scoped_release unlocked;
    evaluation = tracking::evaluate_files(truth.string(), results.string(), tracking::benchmark_named(benchmark));
  }
  nb::dict sequences;
  for (const tracking::SequenceCounts& row : evaluation.sequences) sequences[row.name.c_str()] = to_dict(row.counts);
  return {sequences, evaluation.notes};
}

}  // namespace

void bind_tracking(nb::module_& module) {
  module.def("evaluate_tracking", evaluate, nb::arg("truth"), nb::arg("results"), nb::arg("benchmark"),
             "Numbers by sequence and name, and notes on what was excluded.");
}

}  // namespace unshuffle::python
