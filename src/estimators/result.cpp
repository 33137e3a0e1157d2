#include "unshuffle/estimators/result.hpp"

#include <cmath>
#include <limits>

#include "core/normal.hpp"

namespace unshuffle {

Vector Result::std_errors() const { return covariance.diagonal().cwiseSqrt(); }

Matrix Result::intervals(double level) const {
  const double stretch = normal_reach(level) / normal_quantile;
  Matrix reach = Matrix::Constant(parameters.size(), 2, std::numeric_limits<double>::quiet_NaN());
  if (margins.rows() == parameters.size()) {
    reach = margins;
  } else if (covariance.rows() == parameters.size()) {
    reach = normal_quantile * std_errors().replicate(1, 2);
  }
  if (level != 0.95) reach *= stretch;
  Matrix ends(parameters.size(), 2);
  ends << parameters - reach.col(0), parameters + reach.col(1);
  return ends;
}

std::vector<Alternative> alternatives_of(const Result& result) {
  if (result.identifiable.verdict != Verdict::not_assessed) return result.identifiable.alternatives;
  // Two ends of a descent closer than this are the same optimum.
  constexpr double same = 1e-3;
  std::vector<Vector> seen{result.parameters};
  std::vector<Alternative> others;
  for (const Candidate& candidate : result.course.candidates) {
    if (!candidate.converged || candidate.parameters.size() != result.parameters.size()) continue;
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
