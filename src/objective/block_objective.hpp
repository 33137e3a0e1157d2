// The outer objective of one block of rows, on either backend, and the derivatives that the model pulls back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/line_transport.hpp"
#include "transport/small_line.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle {

/// One block's objective per unit of its mass, and what it takes to continue.
struct BlockValue {
  double objective = 0;
  double transport_cost = 0;
  double marginal_error = 0;
  double compression_error = 0;
  int iterations = 0;
  bool converged = false;
  std::string message;
};

/// Rows of one block with their weights, normalised within the block; empty when equal.
struct BlockRows {
  std::vector<Index> rows;
  Vector weights;

  [[nodiscard]] Index size() const { return static_cast<Index>(rows.size()); }
  /// Σ μ log μ.
  [[nodiscard]] double self_entropy() const;
  /// x multiplied by the rows' weights.
  [[nodiscard]] Matrix weighted(const MatrixRef& x) const;
  /// Of one row of the block.
  [[nodiscard]] double weight(Index k) const {
    return weights.size() > 0 ? weights[k] : 1.0 / static_cast<double>(size());
  }
  /// The weights, equal ones too.
  [[nodiscard]] Vector all_weights() const;
};

/// The library's entropic values are relative to μ⊗ν; the paper's H(Γ) = ΣΓ(log Γ - 1) is relative to counting measure,
/// which adds this (docs/mathematics.md §2.1).
[[nodiscard]] double paper_constant(const BlockRows& responses, const BlockRows& features, double epsilon);

[[nodiscard]] transport::MarginalPolicies policies_of(const EvaluatorOptions& options, const BlockRows& responses,
                                                      const BlockRows& features);

/// Masses of rows from their share of their weight. A row of sampled sums has a partner for certain when it holds
/// `ratio` of its weight.
void set_mass(const BlockRows& rows, const transport::MarginalPolicy& policy, const Vector& ratio, Vector& mass);

/// One output and an additive model: C_ij = (t_i - s_j)², never formed.
class LineBlock {
 public:
  LineBlock(BlockRows responses, BlockRows features, const EvaluatorOptions& options);

  BlockValue solve(Vector t, Vector s, double epsilon, Objective objective);
  /// Derivative of the objective in every t (or s).
  [[nodiscard]] Vector gradient(Side side, Objective objective);
  [[nodiscard]] Matrix hessian(const Matrix& t_jacobian, const Matrix& s_jacobian, Objective objective);
  void forget();

  /// Fills the block's part of `links` and remembers potentials for plan_entry().
  void link(SoftLinks& links);
  [[nodiscard]] double plan_entry(Index i, Index j) const;
  [[nodiscard]] double cost_entry(Index i, Index j) const { return (t_[i] - s_[j]) * (t_[i] - s_[j]); }
  [[nodiscard]] const BlockRows& rows(Side side) const { return side == Side::response ? responses_ : features_; }

 private:
  [[nodiscard]] double measured_error(Side side, const Vector& ratio) const;
  /// Whether the block has few points, whose whole plan is found faster than a compressed one.
  [[nodiscard]] bool few(Objective objective) const;
  [[nodiscard]] transport::LineTransport& compressed();

  BlockRows responses_, features_;
  transport::MarginalPolicies policies_;
  transport::LineOptions options_;
  transport::SmallLine small_;
  std::optional<transport::LineTransport> compressed_;  ///< Where it is needed.
  bool told_by_few_ = false;                            ///< The last solution is that of small_.
  Vector t_, s_, u_, v_;
  double epsilon_ = 0;
};

/// Anything else: C is formed in full, in a team each process's share of it. Prior weights ω of pairs (not with a team)
/// are the reference measure of the plan's entropy (docs/mathematics.md §1.4),
///   min <C,Γ> + ε KL(Γ | ω∘μ⊗ν)  =  min <C - ε log ω, Γ> + ε KL(Γ | μ⊗ν),
/// so to the solver they are part of the cost. In the objectives they go with the entropy: the entropic value, a
/// likelihood over links, includes both; the transport cost <C,Γ>, which measures how well w explains the chosen links,
/// neither. Otherwise w would be rewarded for following the prior instead of the data.
class DenseBlock {
 public:
  DenseBlock(BlockRows responses, BlockRows features, const EvaluatorOptions& options, Team* team);

  /// The rows of cost(), or its columns: all of the block's, or this process's share of the longer side.
  [[nodiscard]] std::vector<Index> held(Side side) const;
  /// The caller fills cost() first.
  BlockValue solve(double epsilon, Objective objective);
  [[nodiscard]] Matrix& cost() { return cost_; }
  [[nodiscard]] bool leaves_responses_out() const { return std::holds_alternative<transport::Sampled>(options_.rows); }
  /// Of the last solution; not with a team.
  [[nodiscard]] const Matrix& plan() const { return solution_->plan(); }
  /// dL/dC of an L with this derivative in the plan.
  [[nodiscard]] Matrix pull_back(const Matrix& slope) const { return solution_->pull_back(slope); }
  [[nodiscard]] const Matrix& residual_cost() const { return cost_; }
  /// log ω of every pair; empty: all ones.
  [[nodiscard]] Matrix& log_prior() { return log_prior_; }
  /// W = d objective / dC, of the pairs in cost().
  [[nodiscard]] Matrix plan_weights(Objective objective);
  void forget();

  void link(SoftLinks& links);
  /// Not with a team.
  [[nodiscard]] double plan_entry(Index i, Index j) const { return solution_->plan()(i, j); }
  [[nodiscard]] double cost_entry(Index i, Index j) const {
    return cost_(i, j) - (log_prior_.size() > 0 ? options_.epsilon * log_prior_(i, j) : 0.0);
  }
  [[nodiscard]] const BlockRows& rows(Side side) const { return side == Side::response ? responses_ : features_; }

 private:
  BlockRows responses_, features_;
  transport::SolverOptions options_;
  transport::Solver solver_;
  Matrix cost_, log_prior_;
  std::optional<transport::Solution> solution_;
};

}  // namespace unshuffle
