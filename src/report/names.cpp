// Words for enumerations, and what the candidates of a fit amount to; shared by the text and the JSON report.
#include <cmath>

#include "unshuffle/report/json.hpp"

namespace unshuffle {

const char* name_of(Objective objective) { return objective == Objective::entropic ? "entropic" : "transport"; }

const char* name_of(Backend backend) {
  switch (backend) {
    case Backend::dense:
      return "dense";
    case Backend::sorted:
      return "sorted";
    case Backend::automatic:
      break;
  }
  return "auto";
}

const char* name_of(Fit::Status status) {
  switch (status) {
    case Fit::Status::converged:
      return "converged";
    case Fit::Status::inner_not_converged:
      return "inner not converged";
    case Fit::Status::outer_not_converged:
      return "outer not converged";
    case Fit::Status::stopped:
      break;
  }
  return "stopped";
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::identified:
      return "identified";
    case Verdict::weakly_identified:
      return "weakly identified";
    case Verdict::not_identifiable:
      return "not identifiable";
    case Verdict::not_assessed:
      break;
  }
  return "not assessed";
}

std::vector<Alternative> alternatives_of(const Fit& fit) {
  if (fit.identifiable.verdict != Verdict::not_assessed) return fit.identifiable.alternatives;
  // Two ends of the descent closer than this are the same optimum reached from two sides.
  constexpr double same = 1e-3;
  std::vector<Vector> seen{fit.parameters};
  std::vector<Alternative> others;
  for (const Candidate& candidate : fit.candidates) {
    if (!candidate.converged || candidate.parameters.size() != fit.parameters.size()) continue;
    bool known = false;
    for (const Vector& optimum : seen) {
      known = known || (candidate.parameters - optimum).norm() <= same * (1e-12 + optimum.norm());
    }
    if (known) continue;
    seen.push_back(candidate.parameters);
    others.push_back({candidate.parameters, std::nan(""), candidate.objective, candidate.start});
  }
  return others;
}

}  // namespace unshuffle
