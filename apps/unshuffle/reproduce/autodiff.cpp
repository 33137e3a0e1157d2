// The implicit gradient against differentiating through Sinkhorn iterations: what it finds, how long, how much memory.
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "reproduce/summaries.hpp"
#include "reproduce/trial.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/objective/unrolled.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::app {
namespace autodiff_parts {

using Clock = std::chrono::steady_clock;

constexpr double epsilon = 1e-2;  // of the largest cost; small enough to matter, large enough for 200 iterations

struct Setting {
  Problem problem;
  Vector w;
};

Setting draw(Index rows, std::uint64_t seed) {
  const Simulation simulation = simulate({.design = Design::sensing, .rows = rows, .seed = seed});
  return {simulation.problem, 0.8 * simulation.coefficients};
}

Matrix cost_of(const Setting& setting) {
  const Vector s = setting.problem.z * setting.w;
  Matrix cost(setting.problem.responses(), s.size());
  for (Index j = 0; j < s.size(); ++j) cost.col(j) = (setting.problem.y.col(0).array() - s[j]).square();
  return cost;
}

Vector gradient_of(const Setting& setting, const Matrix& weights) {
  const Vector s = setting.problem.z * setting.w, by_column = weights.colwise().sum();
  const Vector on_s = 2 * (by_column.cwiseProduct(s) - weights.transpose() * setting.problem.y.col(0));
  return setting.problem.z.transpose() * on_s;
}

Vector implicit_line(const Setting& setting) {
  const Problem problem = completed(setting.problem);
  const auto model = Linear(false).bound_to(problem);
  EvaluatorOptions options;
  options.epsilon.value = epsilon;
  return Evaluator(problem, *model, options).evaluate(setting.w).gradient / double(problem.responses());
}

Vector implicit_dense(const Setting& setting) {
  return gradient_of(setting, transport::solve(cost_of(setting), {.epsilon = epsilon}).gradient());
}

Vector unrolled(const Setting& setting, int iterations, Tape tape) {
  const Matrix cost = cost_of(setting);
  const Vector weights = Vector::Ones(cost.rows());
  return gradient_of(setting,
                     unrolled_sinkhorn(cost, weights, weights, epsilon * cost.maxCoeff(), iterations, tape).weights);
}

struct Spent {
  double seconds = 0, megabytes = 0;
};

double megabytes_of(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes / 1024;
  }
  throw SystemFailure("/proc/self/status does not say " + key);
}

/// Time of some work, and by how much the process grew meanwhile at most.
template <class Work>
Spent spent_by(const Work& work) {
  malloc_trim(0);                               // give back what earlier work left, so that it is counted again
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak starts from here
  const double before = megabytes_of("VmRSS:");
  const auto begin = Clock::now();
  (void)work();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return {seconds, std::max(0.1, megabytes_of("VmHWM:") - before)};
}

Measurements measure(const Settings& settings) {
  const Index rows = settings.quick ? 200 : 1000;
  const Setting setting = draw(rows, settings.seed);
  const Vector exact = implicit_line(setting);
  Measurements all;
  auto note = [&](double iterations, const char* method, const Spent& spent) {
    all.push_back({"cost", iterations, 0, method, "seconds", spent.seconds});
    all.push_back({"cost", iterations, 0, method, "megabytes", spent.megabytes});
  };
  const std::vector<int> counts{1, 2, 5, 10, 20, 50, 100, 200};
  for (const int count : counts) {
    const double off = (unrolled(setting, count, Tape::recomputed) - exact).norm() / exact.norm();
    all.push_back({"accuracy", double(count), 0, "robot-unrolled", "gradient_error", off});
    note(count, "unrolled, stored", spent_by([&] { return unrolled(setting, count, Tape::stored); }));
    note(count, "unrolled, recomputed", spent_by([&] { return unrolled(setting, count, Tape::recomputed); }));
    if (settings.progress) (void)settings.progress(count, 1.2 * counts.back());
  }
  const Spent dense = spent_by([&] { return implicit_dense(setting); });
  const Spent line = spent_by([&] { return implicit_line(setting); });
  for (const int count : counts) {
    note(count, "implicit, any cost", dense);
    note(count, "implicit, one response", line);
  }
  all.push_back({"setting", double(rows), 0, "", "rows", double(rows)});
  return all;
}

Findings judge(const Measurements& all) {
  Findings findings;
  auto at_200 = [&](const char* method, const char* quantity) {
    return value_at(all, {"cost", method, quantity}, 200);
  };
  const double error_1 = value_at(all, {"accuracy", "", ""}, 1);
  const double error_200 = value_at(all, {"accuracy", "", ""}, 200);
  findings.claims.push_back(
      {"Running Sinkhorn until convergence (200 iterations) leads to a better gradient than few iterations.",
       error_200 < error_1,
       fmt::format("Relative error {:.1e} after 1 iteration, {:.1e} after 200.", error_1, error_200)});
  const double time = at_200("unrolled, stored", "seconds") / at_200("implicit, one response", "seconds");
  const double memory = at_200("unrolled, stored", "megabytes") / at_200("implicit, one response", "megabytes");
  findings.claims.push_back(
      {"The implicit gradient is cheaper in time and memory than differentiating through 200 iterations.",
       time > 1 && memory > 1,
       fmt::format(
           "{:.0f} times less time and {:.0f} times less memory on this problem of one response; with the cost matrix "
           "formed, {:.1f} and {:.0f} times.",
           time, memory, at_200("unrolled, stored", "seconds") / at_200("implicit, any cost", "seconds"),
           at_200("unrolled, stored", "megabytes") / at_200("implicit, any cost", "megabytes"))});
  return findings;
}

}  // namespace autodiff_parts

Experiment autodiff_experiment() {
  return {"autodiff", "Implicit gradient against reverse-mode differentiation through Sinkhorn iterations.",
          autodiff_parts::measure, autodiff_parts::judge};
}

}  // namespace unshuffle::app
