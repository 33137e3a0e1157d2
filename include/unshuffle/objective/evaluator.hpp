// One evaluation of the outer objective: predict → transport → gradient, with warm starts between calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"
#include "unshuffle/transport/marginal.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

class Team;

/// ε of the lower problem. It has the unit of the cost; relative means relative to the largest cost at the
/// first w seen, which is what the paper's public code does.
struct Epsilon {
  double value = 1e-4;
  bool relative = true;
};

enum class Backend {
  automatic,
  dense,   ///< The plan of all pairs in memory: any model.
  sorted,  ///< One output and an additive model: points on a line.
  clouds,  ///< Up to eight outputs and an additive model: points in space, memory linear in the rows.
};

struct EvaluatorOptions {
  Objective objective = Objective::transport;
  Epsilon epsilon;
  transport::MarginalPolicy response_side = transport::Exact{};  ///< Policy of the rows of D1.
  transport::MarginalPolicy feature_side = transport::Exact{};   ///< Policy of the rows of D2.
  /// If responses may have no partner: the log density of one without, given its outputs. It affects which responses go
  /// without. Not with features on the response side of the sorted backend. None: the same for all.
  std::function<double(const VectorRef&)> log_absence{};
  double tolerance = 1e-9;  ///< Largest accepted Σ|row sums - demanded| + Σ|column sums - demanded|, plan mass one.
  double accuracy = 1e-10;  ///< Largest accepted error of a row or column sum by compression, relative to it.
  /// automatic: sorted for one output, an additive model and no prior; else dense.
  Backend backend = Backend::automatic;
  /// Processes that make identical calls and share the blocks, or the plan of a block too large for one of them (not
  /// with a prior). Must outlive the evaluator; null: this process alone.
  Team* team = nullptr;
};

struct Evaluation {
  double objective = 0;       ///< n·F or n·OT_ε, comparable with the paper's sums over rows.
  double transport_cost = 0;  ///< n·<C, Γ>, whatever the objective; C is the residual, without prior weights.
  Vector gradient;            ///< Of `objective` in w.
  Matrix hessian;             ///< Of `objective` in w; empty unless requested.
  double marginal_error = 0;
  double compression_error = 0;  ///< Estimated relative error of the compression; 0 where nothing was compressed.
  int inner_iterations = 0;
  bool converged = false;
  std::string message;  ///< The reason when not converged.
};

/// The soft correspondence of a plan after a fit, without an n×m object on the scalar path.
struct SoftLinks {
  Vector response_mass;  ///< n: row sums of the plan divided by those of a row that is fully matched.
  Vector feature_mass;   ///< m: likewise for columns.
  /// Largest relative error of a row or column sum of the plan between all points, summed in full for a sample of rows
  /// and columns: the actual effect of compression and inner tolerance. 0 on the dense backend.
  double measured_error = 0;
};

/// Γ_ij > 0.
struct PlanEntry {
  Index response_row, feature_row;
  double mass;
};

/// A function of one block's plan, of mass one, and its derivative in the plan.
struct PlanTerm {
  double value;
  Matrix slope;
};

/// Such a function added up over blocks, with its derivatives.
struct PlanSlopes {
  double value = 0;
  Vector gradient;            ///< In w.
  double by_log_epsilon = 0;  ///< In log ε.
};

class Evaluator {
 public:
  /// `model` must be bound to `problem`; both must outlive the evaluator. `problem` must be completed().
  Evaluator(const Problem& problem, const Model& model, EvaluatorOptions options);
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  [[nodiscard]] const EvaluatorOptions& options() const;
  [[nodiscard]] Backend backend() const;  ///< The one in use.

  /// Largest C_ij at w over all pairs that may match.
  [[nodiscard]] double largest_cost(const VectorRef& w) const;

  /// ε in the unit of the cost; resolves a relative ε at the first w evaluated (0 before that).
  [[nodiscard]] double epsilon() const;
  void set_epsilon(double absolute);

  /// Objective and gradient at w, and the Hessian on request (sorted backend only). Starts from the last solution.
  Evaluation evaluate(const VectorRef& w, bool with_hessian = false);

  /// Of the plans of the last evaluation, which was at w. Dense backend only, without a team; single pairs have no
  /// plan.
  [[nodiscard]] PlanSlopes over_plans(const VectorRef& w, const std::function<PlanTerm(const Matrix& plan)>& function);

  /// Forget the last solution: the next evaluation starts cold.
  void reset();

  /// Correspondence at w: how much of each row is matched.
  SoftLinks links(const VectorRef& w);

  /// Γ_ij and what its pair costs the plan, C_ij - ε log(prior weight), at the w of the last links() call; 0 and
  /// infinity for rows of different groups. Throws InvalidInput where a team shares the plan.
  [[nodiscard]] double plan_entry(Index response_row, Index feature_row) const;
  [[nodiscard]] double cost_entry(Index response_row, Index feature_row) const;

  /// The `most` largest entries of every row and every column of the plan at the w of the last links() call, by
  /// response row. Clouds backend only: others throw InvalidInput, and so it is where a team shares the work.
  [[nodiscard]] std::vector<PlanEntry> strongest_links(Index most) const;

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

}  // namespace unshuffle
