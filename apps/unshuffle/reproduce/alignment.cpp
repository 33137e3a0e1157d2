// Two point sets in the plane, each with outliers of its own: what exact and robust plans link.
#include <fmt/format.h>

#include "core/random.hpp"
#include "reproduce/summaries.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::app {
namespace alignment_parts {

constexpr Index kept = 24, outliers = 6, points = kept + outliers;

// Row k of both sets is one point seen twice, for k < kept; the rest are outliers, far off in different directions.
void draw_sets(std::uint64_t seed, Matrix& u, Matrix& v) {
  RandomStream random(seed, 71);
  u.resize(points, 2);
  v.resize(points, 2);
  for (Index k = 0; k < points; ++k) {
    const double angle = 2 * M_PI * double(k) / double(kept);
    for (Index c = 0; c < 2; ++c) {
      u(k, c) = 2 * (c == 0 ? std::cos(angle) : std::sin(angle)) + 0.15 * random.normal();
      v(k, c) = u(k, c) + 0.15 * random.normal();
      if (k < kept) continue;
      u(k, c) = 5 + 0.5 * random.normal();
      v(k, c) = (c == 0 ? -5 : 5) + 0.5 * random.normal();
    }
  }
}

Measurements measure(const Settings& settings) {
  Matrix u, v;
  draw_sets(settings.seed, u, v);
  Matrix cost(points, points);
  for (Index j = 0; j < points; ++j) cost.col(j) = (u.rowwise() - v.row(j)).rowwise().squaredNorm();
  Measurements all;
  for (Index k = 0; k < points; ++k) {
    for (const auto& [name, value] : {std::pair{"u1", u(k, 0)}, {"u2", u(k, 1)}, {"v1", v(k, 0)}, {"v2", v(k, 1)}}) {
      all.push_back({"points", double(k), 0, "", name, value});
    }
  }
  for (const bool robust : {false, true}) {
    transport::SolverOptions options{.epsilon = 1e-4};
    const double share = double(outliers) / points;
    if (robust) options.rows = options.columns = transport::Ball{.spread = share / (1 - share)};
    const Matrix plan = transport::solve(cost, options).plan();
    for (Index i = 0; i < points; ++i) {
      for (Index j = 0; j < points; ++j) {
        all.push_back({robust ? "robust" : "exact", double(i), int(j), "", "mass", plan(i, j)});
      }
    }
  }
  return all;
}

Findings judge(const Measurements& all) {
  auto on_outliers = [&](const std::string& plan) {
    const Matrix mass = matrix_of(select(all, {plan, "", "mass"}), points, points);
    return mass.sum() - mass.topLeftCorner(kept, kept).sum();
  };
  const double exact = on_outliers("exact"), robust = on_outliers("robust");
  Findings findings;
  findings.claims.push_back(
      {"The robust alignment drops potential outliers and matches only points close to each other.",
       robust < 0.25 * exact,
       fmt::format("{:.1f} % of the exact plan's mass links outliers, {:.1f} % of the robust one's.", 100 * exact,
                   100 * robust)});
  return findings;
}

}  // namespace alignment_parts

Experiment alignment_experiment() {
  return {"alignment", "Exact against robust alignment of two point sets in the plane, each with outliers.",
          alignment_parts::measure, alignment_parts::judge};
}

}  // namespace unshuffle::app
