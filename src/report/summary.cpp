#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "unshuffle/report/json.hpp"

namespace unshuffle {
namespace {

constexpr int width = 78;

std::string rule(char c) { return fmt::format("{}\n", std::string(width, c)); }

std::string fact(std::string_view label, const std::string& value) { return fmt::format("{:<18}{}\n", label, value); }

std::string number_or_dash(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "-";
}

/// Coefficient, standard error and 95 % interval; only the coefficient if it is one solution of several.
std::string coefficient_table(const Result& fit) {
  std::size_t name_width = 12;
  for (const std::string& name : fit.names) name_width = std::max(name_width, name.size() + 2);
  std::string out;
  if (fit.identifiable.verdict == Verdict::not_identifiable) {
    out += fmt::format("{:<{}}{:>20}\n", "", name_width, "one of the solutions") + rule('-');
    for (std::size_t at = 0; at < fit.names.size(); ++at) {
      out += fmt::format("{:<{}}{:>20.6g}\n", fit.names[at], name_width, fit.parameters[static_cast<Index>(at)]);
    }
    return out;
  }
  out += fmt::format("{:<{}}{:>14}{:>14}{:>14}{:>14}\n", "", name_width, "coef", "std err", "[0.025", "0.975]");
  out += rule('-');
  const Vector std_errors = fit.std_errors();
  const Matrix intervals = fit.intervals();
  for (std::size_t at = 0; at < fit.names.size(); ++at) {
    const auto row = static_cast<Index>(at);
    const double error = row < std_errors.size() ? std_errors[row] : std::nan("");
    out += fmt::format("{:<{}}{:>14.6g}{:>14}{:>14}{:>14}\n", fit.names[at], name_width, fit.parameters[row],
                       number_or_dash(error, 4), number_or_dash(intervals(row, 0), 6),
                       number_or_dash(intervals(row, 1), 6));
  }
  return out;
}

/// Several lines, indented to the first one's text.
std::string fact_in_lines(std::string_view label, const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); label = "") out += fact(label, line);
  return out;
}

std::string identifiability(const Result& fit) {
  std::string out = name_of(fit.identifiable.verdict);
  if (!fit.identifiable.reason.empty()) out += ": " + fit.identifiable.reason;
  if (!fit.identifiable.advice.empty()) out += "\nadvice: " + fit.identifiable.advice;
  return out;
}

/// The solutions that compete, a line each; of many coefficients the first.
std::string other_solutions(const Result& fit) {
  constexpr std::size_t shown = 3, shown_names = 8;
  std::string out;
  const auto others = alternatives_of(fit);
  for (std::size_t k = 0; k < std::min(shown, others.size()); ++k) {
    out += others[k].origin + ", ";
    out += std::isnan(others[k].gap) ? fmt::format("objective {:.6g}:", others[k].objective)
                                     : fmt::format("{:.1f} nats less likely:", others[k].gap);
    for (std::size_t at = 0; at < std::min(shown_names, fit.names.size()); ++at) {
      out += fmt::format(" {} {:.4g}", fit.names[at], others[k].parameters[static_cast<Index>(at)]);
    }
    if (fit.names.size() > shown_names) out += fmt::format(" and {} more", fit.names.size() - shown_names);
    out += "\n";
  }
  if (others.size() > shown) out += fmt::format("and {} more, all in the JSON\n", others.size() - shown);
  return out;
}

/// The law of the responses where it is not the Gaussian one, or where another one looks likelier.
std::string law_of(const FittedLaw& law) {
  const std::string name = name_of(law.family);
  std::string out;
  if (law.suggested != FamilyKind::gaussian) {
    const char* what = law.suggested == FamilyKind::binomial ? "only 0 and 1" : "counts with many ties";
    out = fact("Family",
               fmt::format("{}; the responses are {}, so {} may fit better", name, what, name_of(law.suggested)));
  } else if (law.family != FamilyKind::gaussian) {
    out = fact("Family", name);
  }
  for (const NamedEstimate& one : law.shape)
    out += fact("", fmt::format("{} {:.6g}, standard error {}", one.name, one.value, number_or_dash(one.std_error, 4)));
  if (!law.mismatch.empty()) out += "Log odds that a link in the order given is right:\n";
  for (const NamedEstimate& one : law.mismatch)
    out += fmt::format("  {:<16}{:.6g}, standard error {}\n", one.name, one.value, number_or_dash(one.std_error, 4));
  return out;
}

/// Of several responses with noise of their own, their standard deviations and correlations.
std::string noise_of(const Result& fit, const FitContext& context) {
  const Matrix& covariance = context.law.noise_covariance;
  if (covariance.size() == 0) return fact("Noise sd", fmt::format("{:.6g}", fit.noise_sd));
  const Vector sds = covariance.diagonal().cwiseSqrt();
  const std::vector<std::string>& names = context.columns.response;
  std::string out;
  for (Index k = 0; k < sds.size(); ++k) {
    std::string line = fmt::format("{} {:.6g}", names[std::size_t(k)], sds(k));
    for (Index l = 0; l < k; ++l) {
      const double correlation = covariance(k, l) / (sds(k) * sds(l));
      if (correlation != 0) line += fmt::format(", correlation {:.3f} with {}", correlation, names[std::size_t(l)]);
    }
    out += fact(k == 0 ? "Noise sd" : "", line);
  }
  return out;
}

/// Between processes, or passes over tables in pieces; empty for one process and tables in memory.
std::string shared_work(const Course& course) {
  const double kilobytes = course.bytes_per_evaluation / 1000;
  if (course.passes > 0) {
    return fact("Tables in pieces",
                fmt::format("{} process{}, {} passes over the rows, {:.0f} kB moved per evaluation", course.processes,
                            course.processes == 1 ? "" : "es", course.passes, kilobytes));
  }
  if (course.processes == 1) return "";
  return fact("Work shared", fmt::format("{} processes, {:.0f} kB moved per evaluation", course.processes, kilobytes));
}

}  // namespace

std::string summary_of(const Result& fit, const FitContext& context) {
  const Course& course = fit.course;
  std::string out = fmt::format("{:^{}}\n", "Regression with lost row links", width);
  out += rule('=');
  out += fact("Method", fmt::format("{}, model {}, {} backend", name_of(context.estimator), context.model,
                                    name_of(fit.plan.backend)));
  out += fact_in_lines("Chosen", fit.choice);
  out += fact("Rows", fmt::format("{} responses, {} features", fit.rows.responses, fit.rows.features));
  out += fact_in_lines("Identifiability", identifiability(fit));
  out += rule('-');
  out += coefficient_table(fit);
  out += rule('-');
  if (!fit.std_error_note.empty()) out += fact("Standard errors", fit.std_error_note);
  out += law_of(context.law);
  out += fact("Matched share", fmt::format("{:.4f}", fit.plan.matched_share));
  out += noise_of(fit, context);
  if (!context.law.link_sums.empty()) out += fact("Likelihood", context.law.link_sums);
  out +=
      fact("Epsilon", fmt::format("{:.4g} ({:.3g} of the largest cost)", fit.plan.epsilon, fit.plan.epsilon_relative));
  out += fact("Objective", fmt::format("{:.8g} ({})", fit.objective.value, fit.objective.name));
  out += fact("Convergence", fmt::format("{}: {}", name_of(fit.status), fit.message));
  out += fact("Marginal error", fmt::format("{:.2g}", fit.plan.marginal_error));
  out += fact_in_lines("Other solutions", other_solutions(fit));
  out += fact("Starts", fmt::format("{}, {} iterations of the best, {} evaluations in all", course.candidates.size(),
                                    course.iterations, course.evaluations));
  out += fact("Time, memory", fmt::format("{:.3f} s, {:.0f} MB at the peak", course.seconds, course.peak_memory_mb));
  return out + shared_work(course) + rule('=');
}

}  // namespace unshuffle
