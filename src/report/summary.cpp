#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "unshuffle/report/json.hpp"

namespace unshuffle {
namespace {

constexpr int width = 78;

std::string rule(char c) { return std::string(width, c) + "\n"; }

std::string fact(std::string_view label, const std::string& value) { return fmt::format("{:<18}{}\n", label, value); }

std::string number_or_dash(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "-";
}

/// Coefficient, standard error and 95 % interval; of coefficients that are one solution of several, only themselves.
std::string coefficient_table(const Fit& fit) {
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

/// Several lines, the later ones below the first one's text.
std::string fact_in_lines(std::string_view label, const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); label = "") out += fact(label, line);
  return out;
}

std::string identifiability(const Fit& fit) {
  std::string out = name_of(fit.identifiable.verdict);
  if (!fit.identifiable.reason.empty()) out += ": " + fit.identifiable.reason;
  if (!fit.identifiable.advice.empty()) out += "\nadvice: " + fit.identifiable.advice;
  return out;
}

/// The solutions that compete, a line each; of many coefficients the first.
std::string other_solutions(const Fit& fit) {
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
  if (others.size() > shown) out += fmt::format("and {} more, all in the JSON of --out\n", others.size() - shown);
  return out;
}

}  // namespace

std::string Fit::summary() const {
  std::string out = fmt::format("{:^{}}\n", "Regression with lost row links", width);
  out += rule('=');
  out += fact("Method", fmt::format("{}, model {}, {} backend", name_of(method), model, name_of(backend)));
  out += fact_in_lines("Chosen", choice);
  out += fact("Rows", fmt::format("{} responses, {} features", responses, features));
  out += fact_in_lines("Identifiability", identifiability(*this));
  out += rule('-');
  out += coefficient_table(*this);
  out += rule('-');
  if (!std_error_note.empty()) out += fact("Standard errors", std_error_note);
  out += fact("Matched share", fmt::format("{:.4f}", matched_share));
  out += fact("Noise sd", fmt::format("{:.6g}", noise_sd));
  out += fact("Epsilon", fmt::format("{:.4g} ({:.3g} of the largest cost)", epsilon, epsilon_relative));
  out += fact("Objective", fmt::format("{:.8g} ({})", objective, objective_name));
  out += fact("Convergence", fmt::format("{}: {}", name_of(status), message));
  out += fact("Marginal error", fmt::format("{:.2g}", marginal_error));
  out += fact_in_lines("Other solutions", other_solutions(*this));
  out += fact("Starts", fmt::format("{}, {} iterations of the best, {} evaluations in all", candidates.size(),
                                    iterations, evaluations));
  out += fact("Time, memory", fmt::format("{:.3f} s, {:.0f} MB at the peak", seconds, peak_memory_mb));
  if (passes > 0) {
    out += fact("Tables in pieces",
                fmt::format("{} process{}, {} passes over the rows, {:.0f} kB moved per evaluation", processes,
                            processes == 1 ? "" : "es", passes, bytes_per_evaluation / 1000));
  } else if (processes > 1) {
    out += fact("Work shared",
                fmt::format("{} processes, {:.0f} kB moved per evaluation", processes, bytes_per_evaluation / 1000));
  }
  out += rule('=');
  return out;
}

}  // namespace unshuffle
