// The likelihood of the responses when the links are unknown.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "optimise/optimiser.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

struct LikelihoodOptions {
  EvaluatorOptions evaluator;  ///< Objective, ε and both sides' sums are set by the likelihood.
  double known_noise_sd = 0;   ///< 0: estimated.
  bool entropy = true;         ///< Whether the links' own entropy D counts; it is that of Gaussian kernels.
};

/// Whether responses without a partner follow a law of their own. Otherwise they are assumed to belong to unseen
/// features like the observed ones.
[[nodiscard]] bool leaves_responses_out(const Problem& problem, const Model& bound, const LikelihoodOptions& options);

/// Where a descent on the likelihood ended.
struct Optimum {
  Vector parameters;
  double epsilon = 0;
  double nats = 0;  ///< Minus the log-likelihood.
  bool converged = false;
  int iterations = 0;
  std::string message;

  [[nodiscard]] Vector theta() const;
};

/// Minus the log-likelihood of (w, σ²), in nats; derived in likelihood.cpp and docs/mathematics.md §5. θ = (w, log ε)
/// with ε = 2σ². If the noise is known, its value is used and log ε has no effect.
class LinkLikelihood {
 public:
  /// Both must outlive it; `problem` is completed(), `bound` bound to it.
  LinkLikelihood(const Problem& problem, const Model& bound, LikelihoodOptions options);

  /// Value and gradient; the Hessian is exact in w and by a difference in log ε (sorted backend only).
  Sample at(const Vector& theta, bool with_hessian);

  /// The observed information: the Hessian, with central differences in log ε, and in w when there is no exact one.
  Matrix information(const Vector& theta);

  /// Trust-region Newton from (w, ε) where the Hessian is available, else L-BFGS. Ends early when `keep_going`, asked
  /// in every iteration, says no.
  [[nodiscard]] Optimum most_likely_near(const Vector& w, double epsilon, int max_iterations,
                                         const std::function<bool()>& keep_going = {});

  /// Subtracts tilt·θ from the value; see calibrated().
  void set_tilt(Vector tilt) { tilt_ = std::move(tilt); }

  /// ε where the noise is known, else `otherwise`.
  [[nodiscard]] double known_epsilon_or(double otherwise) const {
    return known_epsilon_ > 0 ? known_epsilon_ : otherwise;
  }

  [[nodiscard]] int evaluations() const { return evaluations_; }
  [[nodiscard]] bool has_hessian() const { return evaluator_.backend() == Backend::sorted; }

 private:
  Sample evaluate(const Vector& w, double log_epsilon, bool with_hessian);
  Matrix information_by_differences(const Vector& theta);
  [[nodiscard]] std::array<double, 2> link_entropy(double epsilon) const;

  struct DenseStretch {
    double rows;
    double kappa;
  };

  const Problem& problem_;
  const Model& bound_;
  Evaluator evaluator_;
  std::vector<DenseStretch> blocks_;
  Vector tilt_;
  double numbers_ = 0;   ///< Links times outputs.
  double constant_ = 0;  ///< Makes the value a log-density.
  double floor_ = 0;     ///< Smallest log ε considered.
  double known_epsilon_ = 0;
  int evaluations_ = 0;
};

}  // namespace unshuffle
