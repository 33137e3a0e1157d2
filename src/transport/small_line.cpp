#include "transport/small_line.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace unshuffle::transport {
namespace {

constexpr Index most = SmallLine::most;
// On the stack: what is done with so few points takes less time than asking for memory.
using Small = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, most, most>;
using Column = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, most, 1>;

/// Points in ascending order.
LineMeasure sorted(const SmallLine::Points& points) {
  std::vector<Index> order(static_cast<std::size_t>(points.position.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) { return points.position[a] < points.position[b]; });
  return {points.position(order), points.weight(order)};
}

/// The potentials of the columns at ε = 0, in the order of the points.
Vector cold_start(const SmallLine::Points& t, const SmallLine::Points& s, double epsilon) {
  std::vector<Index> order(static_cast<std::size_t>(s.position.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return s.position[a] < s.position[b]; });
  const LineMeasure columns{s.position(order), s.weight(order)};
  const Vector found = monotone_potentials(sorted(t), columns, epsilon);
  Vector v(found.size());
  for (std::size_t k = 0; k < order.size(); ++k) v[order[k]] = found[static_cast<Index>(k)];
  return v;
}

/// The plan at given column potentials, its rows summing to their weights; transposed, so that a row lies together.
class Plan {
 public:
  Plan(const SmallLine::Points& t, const SmallLine::Points& s, double epsilon)
      : a_(t.weight), b_(s.weight), log_b_(s.weight.array().log()), distance_(s.position.size(), t.position.size()) {
    for (Index i = 0; i < distance_.cols(); ++i) distance_.col(i) = t.position[i] - s.position.array();
    exponent_ = distance_.array().square() / epsilon;
  }

  void move_to(const Column& v) {
    v_ = v;
    u_.resize(a_.size());
    entries_.resize(distance_.rows(), distance_.cols());
    for (Index i = 0; i < entries_.cols(); ++i) {
      auto row = entries_.col(i).array();
      row = (log_b_ + v_ - exponent_.col(i)).array();
      const double largest = row.maxCoeff();
      row = (row - largest).exp();
      const double sum = row.sum();
      row *= a_[i] / sum;
      u_[i] = -largest - std::log(sum);
    }
    sums_ = entries_.rowwise().sum();
    gap_ = b_ - sums_;
    error_ = gap_.lpNorm<1>();
    dual_ = a_.dot(u_) + b_.dot(v_);
  }

  /// S = diag(Γᵀ1) - Γᵀ diag(1/a) Γ without its last row and column, which the gauge determines.
  bool factor() {
    const Index k = b_.size() - 1;
    const Small scaled = entries_ * a_.cwiseInverse().asDiagonal();
    Small system = -(scaled.lazyProduct(entries_.transpose())).topLeftCorner(k, k);
    system.diagonal() += sums_.head(k);
    for (const double ridge : {1e-13, 1e-9, 1e-5}) {
      system.diagonal() += ridge * b_.head(k);
      factor_.compute(system);
      if (factor_.info() == Eigen::Success) return true;
    }
    return false;
  }
  template <class Right>
  [[nodiscard]] auto solved(const Right& right) const {
    auto y = right.eval();
    y.bottomRows(1).setZero();
    y.topRows(y.rows() - 1) = factor_.solve(right.topRows(right.rows() - 1));
    return y;
  }

  /// A Newton step that ascends, or lowers the error where the ascent drowns in rounding.
  bool step() {
    if (!factor()) return false;
    const Column direction = solved(gap_), from = v_;
    const double slope = gap_.dot(direction), dual = dual_, error = error_;
    if (!direction.allFinite() || !(slope >= 0)) return false;
    for (double length = 1; length > 1e-6; length *= 0.5) {
      move_to(from + length * direction);
      if (!std::isfinite(error_)) continue;
      if (error_ <= 0.9 * error || dual_ >= dual + 1e-4 * length * slope + 1e-13 * (1 + std::abs(dual))) return true;
    }
    move_to(from);
    return false;
  }

  [[nodiscard]] const Small& entries() const { return entries_; }
  [[nodiscard]] const Small& distance() const { return distance_; }
  [[nodiscard]] const Column& u() const { return u_; }
  [[nodiscard]] const Column& v() const { return v_; }
  [[nodiscard]] double dual() const { return dual_; }
  [[nodiscard]] double error() const { return error_; }

 private:
  Column a_, b_, log_b_, u_, v_, sums_, gap_;
  Small distance_, exponent_, entries_;
  Eigen::LLT<Small> factor_;
  double error_ = 0, dual_ = 0;
};

/// Steps taken; the plan holds what they led to.
int ascend(Plan& plan, const Vector& from, double tolerance) {
  constexpr int most_steps = 40;
  plan.move_to(from);
  int steps = 0;
  while (plan.error() > tolerance && steps < most_steps && plan.step()) ++steps;
  return steps;
}

}  // namespace

LineReport SmallLine::solve(const Points& t, const Points& s, double epsilon, double tolerance) {
  Plan plan(t, s, epsilon);
  LineReport report;
  if (v_.size() == s.position.size()) report.iterations = ascend(plan, v_, tolerance);
  const bool warm = v_.size() == s.position.size() && plan.error() <= tolerance;
  if (!warm) report.iterations += ascend(plan, cold_start(t, s, epsilon), tolerance);
  report.converged = plan.error() <= tolerance;
  if (!report.converged) {
    forget();
    return report;
  }
  u_ = plan.u();
  v_ = plan.v();
  const Small pull = 2 * plan.entries().cwiseProduct(plan.distance());
  row_gradient_ = pull.colwise().sum();
  column_gradient_ = -pull.rowwise().sum();
  report.marginal_error = plan.error();
  report.transport_cost = 0.5 * pull.cwiseProduct(plan.distance()).sum();
  report.value = epsilon * (plan.dual() - 1);
  return report;
}

// dV = <Γ, dC> and d²V = <Γ, d²C> + <dΓ, dC> with dΓ = Γ(du + dv - dC/ε) and H [du; dv] = [(Γ∘dC)1; (Γ∘dC)ᵀ1]/ε, where
// C_ij = r², r = t_i - s_j, dC = 2r dr.
Matrix SmallLine::hessian(const Points& t, const Points& s, double epsilon, const Matrix& t_jacobian,
                          const Matrix& s_jacobian) const {
  Plan plan(t, s, epsilon);
  plan.move_to(v_);
  const Small& entries = plan.entries();
  const Small pull = 2 * entries.cwiseProduct(plan.distance());
  const Small direct = 2 * entries - (2 / epsilon) * pull.cwiseProduct(plan.distance());
  const Matrix cross = s_jacobian.transpose() * (direct * t_jacobian);
  Matrix sum = t_jacobian.transpose() * direct.colwise().sum().transpose().asDiagonal() * t_jacobian +
               s_jacobian.transpose() * direct.rowwise().sum().asDiagonal() * s_jacobian - cross - cross.transpose();
  if (!plan.factor()) return sum;
  const Matrix f = pull.colwise().sum().transpose().asDiagonal() * t_jacobian - pull.transpose() * s_jacobian;
  const Matrix g = pull * t_jacobian - pull.rowwise().sum().asDiagonal() * s_jacobian;
  const Matrix f_over_a = t.weight.cwiseInverse().asDiagonal() * f;
  const Matrix y = plan.solved(Matrix(g - entries * f_over_a));
  const Matrix x = f_over_a - t.weight.cwiseInverse().asDiagonal() * (entries.transpose() * y);
  return sum + (f.transpose() * x + g.transpose() * y) / epsilon;
}

}  // namespace unshuffle::transport
