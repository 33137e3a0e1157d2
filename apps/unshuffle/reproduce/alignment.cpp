// Two point sets in the plane, each with outliers of its own: what exact and robust plans link.
#include <fmt/format.h>

#include "core/random.hpp"
#include "reproduce/summaries.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::app {
namespace {

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

Vector column_of(const Measurements& all, const std::string& quantity) {
  const Measurements chosen = select(all, {"points", "", quantity});
  Vector values(chosen.size());
  for (std::size_t k = 0; k < chosen.size(); ++k) values[Index(k)] = chosen[k].value;
  return values;
}

Curve dots(const std::string& label, const Colour& colour, const Vector& x, const Vector& y) {
  return {.label = label,
          .colour = colour,
          .x = {x.begin(), x.end()},
          .y = {y.begin(), y.end()},
          .low = {},
          .high = {},
          .line = false};
}

Shown show(const Measurements& all) {
  const Vector u1 = column_of(all, "u1"), u2 = column_of(all, "u2"), v1 = column_of(all, "v1"),
               v2 = column_of(all, "v2");
  Shown shown;
  shown.figure = {.title = "Exact and robust alignment of two point sets with outliers", .columns = 2};
  double on_outliers[2] = {0, 0};
  for (const std::string panel : {"exact", "robust"}) {
    Panel made{.title = panel, .x_label = "first coordinate", .y_label = "second coordinate"};
    for (const Measurement& link : select(all, {panel, "", "mass"})) {
      const auto i = static_cast<Index>(link.x), j = static_cast<Index>(link.run);
      if (i >= kept || j >= kept) on_outliers[panel == "robust"] += link.value;
      const double strength = link.value * double(points);
      if (strength > 0.05) made.segments.push_back({u1[i], u2[i], v1[j], v2[j], strength});
    }
    made.curves = {dots("first set", colour_of("robot"), u1, u2),
                   dots("second set", colour_of("robot-robust"), v1, v2)};
    shown.figure.panels.push_back(std::move(made));
  }
  shown.claims.push_back({"The robust alignment drops potential outliers and matches only points close to each other.",
                          on_outliers[1] < 0.25 * on_outliers[0],
                          fmt::format("{:.1f} % of the exact plan's mass links outliers, {:.1f} % of the robust one's.",
                                      100 * on_outliers[0], 100 * on_outliers[1])});
  return shown;
}

}  // namespace

Experiment alignment_experiment() {
  return {"alignment", "Exact against robust alignment of two point sets in the plane, each with outliers.", measure,
          show};
}

}  // namespace unshuffle::app
