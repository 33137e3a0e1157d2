// The objective along a line through the truth: what smoothing does to its local minima.
#include <fmt/format.h>

#include <cmath>

#include "core/random.hpp"
#include "reproduce/summaries.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle::app {
namespace landscape_parts {

constexpr Index rows = 8, features = 4;
constexpr double reach = 3, hard = 1e-7;

Problem draw_problem(std::uint64_t seed, Vector& w) {
  RandomStream random(seed, 72);
  Problem problem;
  problem.z.resize(rows, features);
  for (double& value : problem.z.reshaped()) value = random.normal();
  w.resize(features);
  for (double& value : w) value = random.normal();
  problem.y = problem.z * w;
  for (double& value : problem.y.reshaped()) value += std::sqrt(0.1) * random.normal();
  return completed(problem);
}

struct Smoothing {
  const char* name;
  Objective objective;
  double epsilon;
};

int local_minima(const std::vector<double>& values) {
  int found = 0;
  for (std::size_t k = 1; k + 1 < values.size(); ++k) {
    if (values[k] < values[k - 1] && values[k] <= values[k + 1]) ++found;
  }
  return found;
}

/// Minima are counted on a grid four times as fine as the curve that is kept, and only the first draw's is.
Measurements measure(const Settings& settings) {
  constexpr Smoothing smoothings[] = {{"transport, ε → 0", Objective::transport, hard},
                                      {"transport, ε = 1e-2", Objective::transport, 1e-2},
                                      {"entropic, ε = 1e-2", Objective::entropic, 1e-2}};
  const int steps = settings.quick ? 241 : 961;
  Measurements all;
  for (int draw = 0; draw < settings.repetitions(); ++draw) {
    Vector w;
    const Problem problem = draw_problem(settings.seed + std::uint64_t(draw), w);
    const auto model = Linear(false).bound_to(problem);
    const Vector direction = Vector::Unit(features, 0);
    for (const Smoothing& kind : smoothings) {
      EvaluatorOptions options;
      options.objective = kind.objective;
      Evaluator evaluator(problem, *model, options);
      evaluator.set_epsilon(kind.epsilon * evaluator.largest_cost(w));
      std::vector<double> values;
      for (int step = 0; step < steps; ++step) {
        const double along = reach * (2.0 * step / (steps - 1) - 1);
        values.push_back(evaluator.evaluate(w + along * direction).objective / double(rows));
        if (draw == 0 && step % 4 == 0) all.push_back({kind.name, along, draw, "", "objective", values.back()});
      }
      all.push_back({kind.name, 0, draw, "", "local_minima", double(local_minima(values))});
    }
  }
  return all;
}

Findings judge(const Measurements& all) {
  Findings findings;
  std::vector<double> minima;
  std::string counts;
  for (const std::string& name : panels_of(all)) {
    minima.push_back(mean(values_at(select(all, {name, "", "local_minima"}), 0)));
    counts += fmt::format("{}{:.1f} for {}", counts.empty() ? "" : ", ", minima.back(), name);
  }
  if (minima.size() < 2) throw BadData("two kinds of smoothing at least were expected, each a panel of its own");
  findings.claims.push_back({"Entropic smoothing of the lower problem removes local minima of the objective.",
                             minima[1] < minima[0],
                             fmt::format("Local minima along the line, mean over draws: {}.", counts)});
  return findings;
}

}  // namespace landscape_parts

Experiment landscape_experiment() {
  return {"landscape", "Transport cost and entropic value along a line in w, with and without smoothing.",
          landscape_parts::measure, landscape_parts::judge};
}

}  // namespace unshuffle::app
