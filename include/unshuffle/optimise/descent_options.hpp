// User options of a descent.
#pragma once

#include <array>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class Optimizer {
  automatic,     ///< trust_region on the sorted backend from starts with a known covariance, else lbfgs.
  trust_region,  ///< Newton steps in a trust region; needs the sorted backend.
  lbfgs,         ///< Limited-memory quasi-Newton with a strong-Wolfe line search.
  momentum,      ///< Gradient descent with momentum at a fixed step, as in the paper.
  adam,          ///< Mini-batches of rows, redrawn every step.
};
inline constexpr std::array optimizer_words{
    Word<Optimizer>{"auto", Optimizer::automatic}, Word<Optimizer>{"trust-region", Optimizer::trust_region},
    Word<Optimizer>{"lbfgs", Optimizer::lbfgs}, Word<Optimizer>{"momentum", Optimizer::momentum},
    Word<Optimizer>{"adam", Optimizer::adam}};
constexpr std::span<const Word<Optimizer>> words_of(Optimizer) { return optimizer_words; }

/// Steps of fixed size, whole tables or mini-batches.
struct StepOptions {
  double learning_rate = 1e-4;
  double momentum = 0.9;
  Index batch = 0;

  /// When they are read, and the message when they are not.
  struct Meaning {
    bool stepwise, with_momentum;
    const char* steps;
    const char* momentum;
  };

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit, const Meaning& when) {
    visit(OptionText{"learning_rate", "Step of momentum and adam.", positive, when.stepwise, when.steps},
          self.learning_rate);
    visit(OptionText{"momentum", "Of the momentum optimiser.", share_or_zero, when.with_momentum, when.momentum},
          self.momentum);
    visit(OptionText{"batch", "Rows per mini-batch of momentum and adam; 0: all.", not_negative, when.stepwise,
                     when.steps},
          self.batch);
  }
};

/// Of every descent.
[[nodiscard]] constexpr OptionText gradient_tolerance_option() {
  return {"gradient_tolerance", "A descent ends when the gradient falls below this, relative to its natural scale.",
          positive};
}

struct DescentOptions {
  Optimizer optimizer = Optimizer::automatic;
  StepOptions step{};
  double gradient_tolerance = 1e-6;
  double start_confidence = 0.95;
  double epsilon_start = 0;

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"optimizer", "How the robot methods minimise their objective."}, self.optimizer);
    const bool momentum = self.optimizer == Optimizer::momentum;
    StepOptions::describe(self.step, visit,
                          {momentum || self.optimizer == Optimizer::adam, momentum, "the optimizers momentum and adam",
                           "the optimizer momentum"});
    visit(gradient_tolerance_option(), self.gradient_tolerance);
    visit(OptionText{"start_confidence",
                     "A RANSAC start has a known uncertainty; the descent stays within this confidence region of it. "
                     "0: free descent.",
                     share_or_zero},
          self.start_confidence);
    visit(OptionText{"epsilon_start",
                     "Start with this larger ε, in the unit of epsilon or epsilon_abs, and reduce it; 0: start with ε.",
                     not_negative},
          self.epsilon_start);
  }
};

}  // namespace unshuffle
