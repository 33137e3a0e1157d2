#include "core/special.hpp"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/zeta.hpp>

#include "core/normal.hpp"

namespace unshuffle {

namespace {

// In double precision: long double is several times slower and its extra digits are never used. Results out of range
// become 0 or infinity, which is how callers would handle an exception.
using Policy =
    boost::math::policies::policy<boost::math::policies::promote_double<false>,
                                  boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::underflow_error<boost::math::policies::ignore_error>>;
using ChiSquared = boost::math::chi_squared_distribution<double, Policy>;
using Normal = boost::math::normal_distribution<double, Policy>;

}  // namespace

double chi_squared_tail(double x, double k) {
  if (!(x < HUGE_VAL)) return x > 0 ? 0 : x;  // NaN stays what it is
  return boost::math::cdf(boost::math::complement(ChiSquared(k), x));
}

double chi_squared_quantile(double share, double k) { return boost::math::quantile(ChiSquared(k), share); }

double normal_score(double share) { return boost::math::quantile(Normal(), share); }

double normal_reach(double share) { return normal_score(0.5 * (1 + share)); }

double zeta(double s) { return boost::math::zeta(s, Policy()); }

}  // namespace unshuffle
