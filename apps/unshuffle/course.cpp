#include "course.hpp"

#include <fmt/format.h>

namespace unshuffle::app {

void add_verbose_option(CLI::App& command, bool& verbose, const std::string& help) {
  command.add_flag("--verbose", verbose, help)->excludes("--quiet");
}

std::string course_of(const Course& course) {
  std::string out = fmt::format("{:>5} {:<24} {:>16} {:>10}  {}\n", "", "start", "objective", "iterations", "outcome");
  int place = 0;
  for (const Candidate& one : course.candidates) {
    const std::string outcome = one.message.empty() ? (one.converged ? "converged" : "not converged") : one.message;
    out +=
        fmt::format("{:>5} {:<24} {:>16.8g} {:>10}  {}\n", ++place, one.start, one.objective, one.iterations, outcome);
  }
  if (course.trace.empty()) return out;
  out += fmt::format("{:>5} {:>9} {:>12} {:>16} {:>12} {:>14} {:>6}\n", "start", "iteration", "epsilon", "objective",
                     "gradient", "marginal error", "inner");
  for (const TracePoint& point : course.trace) {
    out +=
        fmt::format("{:>5} {:>9} {:>12.4g} {:>16.8g} {:>12.3e} {:>14.2e} {:>6}\n", point.start, point.iteration,
                    point.epsilon, point.objective, point.gradient_norm, point.marginal_error, point.inner_iterations);
  }
  return out;
}

}  // namespace unshuffle::app
