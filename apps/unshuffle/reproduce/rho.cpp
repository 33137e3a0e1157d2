// How much of Unif(0, 2) a plan to Unif(0, 1) gives up as the ball around the marginals grows.
#include <fmt/format.h>

#include "reproduce/summaries.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::app {
namespace rho_parts {

constexpr Index points = 60;
constexpr double no_mass = 1e-9;  // of a plan of mass one; such cells are not written

std::string panel_name(double rho) { return fmt::format("ρ₁ = ρ₂ = {:g}", rho); }

Matrix plan_for(double rho) {
  const Vector t = Vector::LinSpaced(points, 1.0 / points, 2 - 1.0 / points), s = 0.5 * t;
  Matrix cost(points, points);
  for (Index j = 0; j < points; ++j) cost.col(j) = (t.array() - s[j]).square();
  transport::SolverOptions options{.epsilon = 1e-3};
  if (rho > 0) options.rows = options.columns = transport::Ball{.spread = rho};
  return transport::solve(cost, options).plan();
}

// ρ is taken as the squared distance of densities, Σμ(μ̄/μ - 1)²: on the simplex it would be ρ/n, which depends on n.
Measurements measure(const Settings&) {
  Measurements all;
  for (const double rho : {0.0, 0.1, 0.2, 1.0}) {
    const Matrix plan = plan_for(rho);
    for (Index i = 0; i < points; ++i) {
      for (Index j = 0; j < points; ++j) {
        if (plan(i, j) > no_mass) all.push_back({panel_name(rho), double(i), int(j), "plan", "mass", plan(i, j)});
      }
    }
  }
  return all;
}

Findings judge(const Measurements& all) {
  Findings findings;
  std::string shares;
  double first = 0, last = 0;
  for (const std::string& panel : panels_of(all)) {
    const Matrix plan = matrix_of(select(all, {panel, "", ""}), points, points);
    const double beyond = plan.bottomRows(points / 2).sum() / plan.sum();
    if (shares.empty()) first = beyond;
    last = beyond;
    shares += fmt::format("{}{:.0f} % at {}", shares.empty() ? "" : ", ", 100 * beyond, panel);
  }
  findings.claims.push_back({"With ρ₁ and ρ₂ large enough, Unif(0, 1) is aligned with the first half of Unif(0, 2).",
                             first > 0.49 && last < 0.05, "Mass left beyond t = 1: " + shares + "."});
  return findings;
}

}  // namespace rho_parts

Experiment rho_experiment() {
  return {"rho", "Robust plans between Unif(0, 2) and Unif(0, 1) as the allowed deviation of the marginals grows.",
          rho_parts::measure, rho_parts::judge};
}

}  // namespace unshuffle::app
