#include "core/special.hpp"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <boost/math/special_functions/zeta.hpp>

#include "core/normal.hpp"

namespace unshuffle {

namespace {

// In double precision: long double is several times slower and its extra digits are never used. Results out of range
// become 0 or infinity, which is how callers would handle an exception.
using Policy =
    boost::math::policies::policy<boost::math::policies::promote_double<false>,
                                  boost::math::policies::domain_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::pole_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::underflow_error<boost::math::policies::ignore_error>>;
using ChiSquared = boost::math::chi_squared_distribution<double, Policy>;
using Normal = boost::math::normal_distribution<double, Policy>;
using Student = boost::math::students_t_distribution<double, Policy>;

}  // namespace

double chi_squared_tail(double x, double k) {
  if (!(x < HUGE_VAL)) return x > 0 ? 0 : x;  // NaN stays what it is
  return boost::math::cdf(boost::math::complement(ChiSquared(k), x));
}

double chi_squared_quantile(double share, double k) { return boost::math::quantile(ChiSquared(k), share); }

double normal_score(double share) { return boost::math::quantile(Normal(), share); }

double normal_reach(double share) { return normal_score(0.5 * (1 + share)); }

double zeta(double s) { return boost::math::zeta(s, Policy()); }

double log_gamma(double x) { return boost::math::lgamma(x, Policy()); }

double digamma(double x) { return boost::math::digamma(x, Policy()); }

double trigamma(double x) { return boost::math::trigamma(x, Policy()); }

double gamma_cumulative(double x, double a) { return boost::math::gamma_p(a, x, Policy()); }

double gamma_quantile(double share, double a) { return boost::math::gamma_p_inv(a, share, Policy()); }

double beta_cumulative(double x, double a, double b) { return boost::math::ibeta(a, b, x, Policy()); }

double student_cumulative(double x, double nu) { return boost::math::cdf(Student(nu), x); }

double student_quantile(double share, double nu) { return boost::math::quantile(Student(nu), share); }

double normal_cumulative(double x) { return boost::math::cdf(Normal(), x); }

}  // namespace unshuffle
