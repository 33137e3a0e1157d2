// Options of the plan that several estimators share.
#pragma once

#include <array>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

inline constexpr std::array backend_words{
    Word<Backend>{"auto", Backend::automatic}, Word<Backend>{"dense", Backend::dense},
    Word<Backend>{"sorted", Backend::sorted}, Word<Backend>{"clouds", Backend::clouds}};
constexpr std::span<const Word<Backend>> words_of(Backend) { return backend_words; }

inline constexpr std::array objective_words{Word<Objective>{"transport", Objective::transport},
                                            Word<Objective>{"entropic", Objective::entropic}};
constexpr std::span<const Word<Objective>> words_of(Objective) { return objective_words; }

/// Accuracy and backend of the inner problem.
struct Precision {
  Backend backend = Backend::automatic;
  double tolerance = 1e-9;
  double accuracy = 1e-10;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(
        OptionText{
            "backend",
            "sorted: one response, clouds: two to eight, both with an additive model and memory linear in the rows; "
            "dense: anything."},
        self.backend);
    visit(OptionText{"tolerance", "Largest error accepted in the row sums of the plan.", positive}, self.tolerance);
    visit(OptionText{"accuracy",
                     "Sorted and clouds backends: largest relative error accepted in a row sum by compression. The "
                     "result states the error measured.",
                     {"within 1e-12 .. 1e-2", [](double v) { return v >= 1e-12 && v <= 1e-2; }}},
          self.accuracy);
  }
};

/// ε of the plan.
struct Smoothing {
  double epsilon = 1e-4;
  double epsilon_abs = 0;

  [[nodiscard]] Epsilon resolved() const {
    return epsilon_abs > 0 ? Epsilon{.value = epsilon_abs, .relative = false} : Epsilon{.value = epsilon};
  }

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"epsilon", "Smoothing of the matching, relative to the largest cost. Smaller: sharper matches.",
                     positive},
          self.epsilon);
    visit(
        OptionText{"epsilon_abs",
                   "The same in the unit of the cost, the squared response; replaces epsilon. 0: not used.", positive},
        self.epsilon_abs);
  }
};

/// The evaluator's options; the sums of the plan are exact.
[[nodiscard]] inline EvaluatorOptions evaluator_options(const Precision& precision, const Epsilon& epsilon = {},
                                                        Objective objective = Objective::transport) {
  EvaluatorOptions made;
  made.objective = objective;
  made.epsilon = epsilon;
  made.tolerance = precision.tolerance;
  made.accuracy = precision.accuracy;
  made.backend = precision.backend;
  return made;
}

}  // namespace unshuffle
