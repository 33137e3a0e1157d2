#include "options.hpp"

#include <fmt/format.h>
#include <nanobind/eigen/dense.h>
#include <nanobind/stl/string.h>

#include <array>
#include <vector>

#include "unshuffle/core/error.hpp"
#include "unshuffle/estimators/methods.hpp"
#include "unshuffle/report/json.hpp"

namespace nb = nanobind;

namespace unshuffle::python {

namespace {

template <class Kind>
struct Word {
  const char* word;
  Kind kind;
};

constexpr std::array objectives{Word<Objective>{"transport", Objective::transport},
                                Word<Objective>{"entropic", Objective::entropic}};
constexpr std::array backends{Word<Backend>{"auto", Backend::automatic}, Word<Backend>{"dense", Backend::dense},
                              Word<Backend>{"sorted", Backend::sorted}};
constexpr std::array optimizers{
    Word<Optimizer>{"auto", Optimizer::automatic}, Word<Optimizer>{"trust-region", Optimizer::trust_region},
    Word<Optimizer>{"lbfgs", Optimizer::lbfgs}, Word<Optimizer>{"momentum", Optimizer::momentum},
    Word<Optimizer>{"adam", Optimizer::adam}};
constexpr std::array start_kinds{
    Word<StartKind>{"auto", StartKind::automatic}, Word<StartKind>{"ls", StartKind::least_squares},
    Word<StartKind>{"ransac", StartKind::ransac}, Word<StartKind>{"group-means", StartKind::group_means},
    Word<StartKind>{"random", StartKind::random}};
constexpr std::array matched_steps{Word<MatchedStep>{"exact", MatchedStep::exact},
                                   Word<MatchedStep>{"gradient", MatchedStep::gradient}};

[[noreturn]] void refuse(const char* option, const std::string& word, const std::vector<std::string>& words) {
  throw InvalidInput(fmt::format("{} = {} must be one of {}", option, word, fmt::join(words, ", ")));
}

Method to_method(const std::string& name) {
  if (const auto method = method_named(name)) return *method;
  std::vector<std::string> names;
  for (const MethodInfo& info : known_methods()) names.emplace_back(info.name);
  refuse("method", name, names);
}

/// A property that reads and writes one of the words.
template <class Kind, std::size_t count>
void bind_words(nb::class_<FitOptions>& options, const char* name, Kind FitOptions::*member,
                const std::array<Word<Kind>, count>& words) {
  options.def_prop_rw(
      name,
      [member, &words](const FitOptions& self) {
        for (const auto& [word, kind] : words) {
          if (kind == self.*member) return std::string(word);
        }
        return std::string("user");
      },
      [name, member, &words](FitOptions& self, const std::string& wanted) {
        std::vector<std::string> all;
        for (const auto& [word, kind] : words) {
          if (word == wanted) {
            self.*member = kind;
            return;
          }
          all.emplace_back(word);
        }
        refuse(name, wanted, all);
      });
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<FitOptions> options(module, "FitOptions", "As in the C++ header fit/fit.hpp.");
  options.def(nb::init<>())
      .def_prop_rw(
          "method", [](const FitOptions& self) { return name_of(self.method); },
          [](FitOptions& self, const std::string& name) { self.method = to_method(name); })
      .def_prop_rw(
          "epsilon", [](const FitOptions& self) { return self.epsilon.value; },
          [](FitOptions& self, double value) { self.epsilon.value = value; })
      .def_prop_rw(
          "epsilon_relative", [](const FitOptions& self) { return self.epsilon.relative; },
          [](FitOptions& self, bool relative) { self.epsilon.relative = relative; })
      .def_prop_rw(
          "start", [](const FitOptions& self) { return self.start; },
          [](FitOptions& self, const Vector& start) {
            self.start = start;
            self.start_kind = StartKind::user;
          });
  bind_words(options, "objective", &FitOptions::objective, objectives);
  bind_words(options, "backend", &FitOptions::backend, backends);
  bind_words(options, "optimizer", &FitOptions::optimizer, optimizers);
  bind_words(options, "start_kind", &FitOptions::start_kind, start_kinds);
  bind_words(options, "am_step", &FitOptions::am_step, matched_steps);
  options.def_rw("epsilon_start", &FitOptions::epsilon_start)
      .def_rw("row_hint", &FitOptions::row_hint)
      .def_rw("row_order_unrelated", &FitOptions::row_order_unrelated)
      .def_rw("unmatched", &FitOptions::unmatched)
      .def_rw("rho1", &FitOptions::rho1)
      .def_rw("rho2", &FitOptions::rho2)
      .def_rw("starts", &FitOptions::starts)
      .def_rw("start_confidence", &FitOptions::start_confidence)
      .def_rw("max_iterations", &FitOptions::max_iterations)
      .def_rw("learning_rate", &FitOptions::learning_rate)
      .def_rw("momentum", &FitOptions::momentum)
      .def_rw("batch", &FitOptions::batch)
      .def_rw("tolerance", &FitOptions::tolerance)
      .def_rw("accuracy", &FitOptions::accuracy)
      .def_rw("gradient_tolerance", &FitOptions::gradient_tolerance)
      .def_rw("em_chains", &FitOptions::em_chains)
      .def_rw("em_swaps", &FitOptions::em_swaps)
      .def_rw("rr_threshold", &FitOptions::rr_threshold)
      .def_rw("rs_samples", &FitOptions::rs_samples)
      .def_rw("rs_threshold", &FitOptions::rs_threshold)
      .def_rw("gw_slices", &FitOptions::gw_slices)
      .def_rw("gw_epsilon", &FitOptions::gw_epsilon)
      .def_rw("unroll", &FitOptions::unroll)
      .def_rw("bootstrap", &FitOptions::bootstrap)
      .def_rw("known_noise_sd", &FitOptions::known_noise_sd)
      .def_rw("seed", &FitOptions::seed)
      .def_rw("threads", &FitOptions::threads);
}

}  // namespace unshuffle::python
