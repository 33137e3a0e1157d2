#include "unshuffle/transport/solution.hpp"

#include <fmt/format.h>

#include "core/of_all.hpp"
#include "transport/solution_state.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::transport {

Solution::Solution(std::shared_ptr<State> state) : state_(std::move(state)) {}

const Matrix& Solution::plan() const& { return state_->transposed ? state_->turned_plan : state_->kernel.plan(); }
Matrix Solution::plan() && { return static_cast<const Solution&>(*this).plan(); }
const Vector& Solution::row_potential() const { return state_->potentials.rows; }
const Vector& Solution::column_potential() const { return state_->potentials.columns; }
const Vector& Solution::row_sums() const {
  return state_->transposed ? state_->kernel.column_sums() : state_->kernel.row_sums();
}
const Vector& Solution::column_sums() const {
  return state_->transposed ? state_->kernel.row_sums() : state_->kernel.column_sums();
}
double Solution::value() const { return state_->value; }
double Solution::transport_cost() const { return state_->transport_cost; }
double Solution::epsilon() const { return state_->epsilon; }
bool Solution::converged() const { return state_->converged; }
const std::string& Solution::message() const { return state_->message; }
double Solution::marginal_error() const { return state_->outcome.marginal_error; }
const std::vector<double>& Solution::error_history() const { return state_->outcome.history; }
int Solution::sinkhorn_steps() const { return state_->outcome.sinkhorn_steps; }
int Solution::newton_steps() const { return state_->outcome.newton_steps; }

// docs/mathematics.md §3.1, centred on the potentials as on the scalar path (node_problem.cpp).
Matrix Solution::gradient(Objective objective) const {
  if (objective == Objective::entropic) return plan();
  State& state = *state_;
  const DualOutcome& outcome = state.outcome;
  const Curvature m1 = state.rows.curvature(outcome.rows.log_ratio, outcome.rows.multipliers);
  const Curvature m2 = state.columns.curvature(outcome.columns.log_ratio, outcome.columns.multipliers);
  const SystemSolution adjoint =
      state.solve_system(state.row_entropy_sums - m1.apply(state.u), state.column_entropy_sums - m2.apply(state.v));
  Matrix w = state.kernel.weighted_plan(outcome.u, outcome.v, adjoint.x.col(0), adjoint.y.col(0));
  if (state.transposed) return w.transpose();
  return w;
}

// docs/mathematics.md §3.2. dΓ = Γ(du + dv - dC/ε) and H [du; dv] = [(Γ∘dC)1; (Γ∘dC)ᵀ1]/ε, so with
// H [p; q] = [(Γ∘G)1; (Γ∘G)ᵀ1] the product
// <G, dΓ> is <Γ(p + q - G)/ε, dC>.
Matrix Solution::pull_back(const MatrixRef& cotangent) const {
  State& state = *state_;
  if (cotangent.rows() != plan().rows() || cotangent.cols() != plan().cols())
    throw InvalidInput(fmt::format("cotangent is {}x{}; the plan is {}x{}", cotangent.rows(), cotangent.cols(),
                                   plan().rows(), plan().cols()));
  Team* team = state.team;
  const Matrix& coupling = state.kernel.plan();
  Matrix weighted = coupling;
  state.transposed ? weighted.array() *= cotangent.transpose().array() : weighted.array() *= cotangent.array();
  const SystemSolution adjoint = state.solve_system(rows_of_all(team, Vector(weighted.rowwise().sum())),
                                                    sum_of_all(team, Vector(weighted.colwise().sum())));
  const auto own_rows = several(team) ? team->share_of(adjoint.x.rows()) : RowShare{0, adjoint.x.rows()};
  const Eigen::ArrayXd p = adjoint.x.col(0).segment(own_rows.first, own_rows.count);
  for (Index j = 0; j < weighted.cols(); ++j) {
    weighted.col(j) = (coupling.col(j).array() * (p + adjoint.y(j, 0)) - weighted.col(j).array()) / state.epsilon;
  }
  if (state.transposed) return weighted.transpose();
  return weighted;
}

}  // namespace unshuffle::transport
