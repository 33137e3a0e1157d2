// The likelihood of the responses when the links are unknown.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "likelihood/exact_groups.hpp"
#include "likelihood/noise_shape.hpp"
#include "links/permanent.hpp"
#include "optimise/optimiser.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

struct LikelihoodOptions {
  EvaluatorOptions evaluator;  ///< Objective, ε and both sides' sums are set by the likelihood.
  double known_noise_sd = 0;   ///< 0: estimated.
  bool entropy = true;  ///< Whether the kernels are Gaussian; otherwise groups go by the plan's value alone, without D.
  NoiseCovariance noise_covariance = NoiseCovariance::equal;  ///< Of several responses, in like units.
};

/// Whether responses without a partner follow a law of their own. Otherwise they are assumed to belong to unseen
/// features like the observed ones.
[[nodiscard]] bool leaves_responses_out(const Problem& problem, const Model& bound, const LikelihoodOptions& options);

/// Where a descent on the likelihood ended.
struct Optimum {
  Vector parameters{};
  double epsilon = 0;
  Vector noise_shape{};  ///< τ of noise_shape.hpp; empty: as of zeros.
  double nats = 0;       ///< Minus the log-likelihood.
  bool converged = false;
  int iterations = 0;
  std::string message{};

  [[nodiscard]] Vector theta() const;
};

/// Minus the log-likelihood of (w, σ²), in nats; derived in likelihood.cpp and docs/mathematics.md §5. θ = (w, log ε)
/// with ε = 2σ². If the noise is known, its value is used and log ε has no effect. Where several responses have noise
/// of a covariance of their own, θ = (w, log ε, τ).
class LinkLikelihood {
 public:
  /// Both must outlive it; `problem` is completed(), `bound` bound to it.
  LinkLikelihood(const Problem& problem, const Model& bound, LikelihoodOptions options);

  /// Value and gradient; the Hessian, where it has one, is exact for groups summed exactly, for others in w, and there
  /// by a difference in log ε.
  Sample at(const Vector& theta, bool with_hessian);

  /// The observed information: the Hessian, with central differences in log ε, and in w when there is no exact one.
  Matrix information(const Vector& theta);

  /// Trust-region Newton from (w, ε, τ) where the Hessian is available, else L-BFGS. Ends early when `keep_going`,
  /// asked in every iteration, says no.
  [[nodiscard]] Optimum most_likely_near(const Optimum& from, int max_iterations,
                                         const std::function<bool()>& keep_going = {});

  /// Subtracts tilt·θ from the value; see calibrated().
  void set_tilt(Vector tilt) { tilt_ = std::move(tilt); }

  /// ε where the noise is known, else `otherwise`.
  [[nodiscard]] double known_epsilon_or(double otherwise) const {
    return known_epsilon_ > 0 ? known_epsilon_ : otherwise;
  }

  /// The covariance of the noise there.
  [[nodiscard]] Matrix noise_covariance(const Optimum& at) const;

  [[nodiscard]] int evaluations() const { return evaluations_; }
  /// One response and an additive model, groups summed exactly or on the sorted backend.
  [[nodiscard]] bool has_hessian() const;
  [[nodiscard]] const LinkSums& sums() const { return sums_; }

 private:
  void take_up(const std::vector<Block>& blocks, LikelihoodOptions options);
  void take_up_planned(const std::vector<Block>& blocks, const LikelihoodOptions& options);
  [[nodiscard]] Vector theta_from(const Optimum& at) const;
  [[nodiscard]] Vector units_at(const Vector& theta) const;
  void add_plan(const Vector& w, double log_epsilon, bool with_hessian, bool centred, Sample& sum);
  void add_remainder(const Vector& w, Sample& sum);
  Sample sum_at(const Vector& theta, bool with_hessian, bool centred);
  Matrix information_by_differences(const Vector& theta);
  [[nodiscard]] std::array<double, 2> link_entropy(double epsilon) const;
  [[nodiscard]] double epsilon_at(double log_epsilon) const;
  [[nodiscard]] bool epsilon_counts(double log_epsilon) const { return known_epsilon_ == 0 && log_epsilon >= floor_; }

  struct DenseStretch {
    double rows;
    double kappa;
  };

  const Problem& problem_;
  const Model& bound_;
  NoiseShape shape_;
  ShapedProblem shaped_{};                    ///< Where the noise has a shape.
  std::unique_ptr<const Problem> planned_{};  ///< The rows whose links go by the plan, where others do not.
  std::unique_ptr<ExactGroups> groups_{};
  std::optional<Evaluator> evaluator_{};  ///< Of the rows that go by the plan; none: all groups are summed exactly.
  bool corrected_ = false;                ///< D is that of remainder_of_plan.
  LinkSums sums_{};
  std::vector<DenseStretch> blocks_;
  Vector tilt_;
  double numbers_ = 0;   ///< Links times outputs, of those by the plan.
  double constant_ = 0;  ///< Makes the value a log-density.
  double floor_ = 0;     ///< Smallest log ε considered.
  double known_epsilon_ = 0;
  int evaluations_ = 0;
};

}  // namespace unshuffle
