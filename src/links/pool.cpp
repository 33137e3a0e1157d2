#include "unshuffle/links/pool.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/special.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

void require_analyses(const Matrix& estimates, const std::vector<Matrix>& covariances, double complete_freedom) {
  if (estimates.rows() < 2)
    throw InvalidInput(
        fmt::format("pooling needs the estimates from at least 2 data sets; {} were given", estimates.rows()));
  if (Index(covariances.size()) != estimates.rows()) {
    throw InvalidInput(fmt::format("{} covariances for the estimates from {} data sets; one each was expected",
                                   covariances.size(), estimates.rows()));
  }
  if (!estimates.allFinite()) throw InvalidInput("estimates to be pooled have to be finite numbers");
  for (const Matrix& one : covariances) {
    if (one.rows() != estimates.cols() || one.cols() != estimates.cols()) {
      throw InvalidInput(
          fmt::format("a covariance is {} × {} for {} estimates", one.rows(), one.cols(), estimates.cols()));
    }
    if (!one.allFinite() || !(one.diagonal().array() > 0).all())
      throw InvalidInput("covariances to be pooled have to be finite with variances above 0");
  }
  if (!(complete_freedom > 0)) {
    throw InvalidInput(
        fmt::format("the degrees of freedom of the complete data are {}; more than 0 was expected", complete_freedom));
  }
}

}  // namespace

// With B the variance between M analyses, Ū the mean variance within, T = Ū + (1+1/M)B and λ = (1+1/M)B/T, the estimate
// has Student's distribution with ν = 1/(1/ν_M + 1/ν_obs) degrees of freedom, where ν_M = (M-1)/λ² and, with ν₀ those
// of the complete data, ν_obs = (ν₀+1)/(ν₀+3) ν₀ (1-λ) (Barnard & Rubin 1999).
Pooled pool(const Matrix& estimates, const std::vector<Matrix>& covariances, double complete_freedom) {
  require_analyses(estimates, covariances, complete_freedom);
  const auto sets = double(estimates.rows());
  const Index count = estimates.cols();
  Pooled made;
  made.estimates = estimates.colwise().mean().transpose();
  const Matrix away = estimates.rowwise() - made.estimates.transpose();
  Matrix within = Matrix::Zero(count, count);
  for (const Matrix& one : covariances) within += one / sets;
  const Matrix between = (1 + 1 / sets) / (sets - 1) * (away.transpose() * away);
  made.covariance = within + between;
  made.freedom.resize(count);
  made.information_lost.resize(count);
  for (Index k = 0; k < count; ++k) {
    const double lambda = between(k, k) / made.covariance(k, k), ratio = between(k, k) / within(k, k);
    const double of_complete = std::isinf(complete_freedom)
                                   ? complete_freedom
                                   : (complete_freedom + 1) / (complete_freedom + 3) * complete_freedom * (1 - lambda);
    made.freedom(k) = 1 / (lambda * lambda / (sets - 1) + 1 / of_complete);
    made.information_lost(k) = (ratio + 2 / (made.freedom(k) + 3)) / (ratio + 1);
  }
  return made;
}

Matrix Pooled::intervals(double level) const {
  if (!(level > 0 && level < 1)) throw InvalidInput(fmt::format("level = {} must be above 0 and below 1", level));
  constexpr double as_normal = 1e7;
  Matrix ends(estimates.size(), 2);
  const Vector errors = std_errors();
  for (Index k = 0; k < estimates.size(); ++k) {
    const double share = 0.5 * (1 + level);
    const double reach = freedom(k) > as_normal ? normal_score(share) : student_quantile(share, freedom(k));
    ends.row(k) << estimates(k) - reach * errors(k), estimates(k) + reach * errors(k);
  }
  return ends;
}

}  // namespace unshuffle
