#include "core/normal.hpp"

#include <boost/math/distributions/normal.hpp>

namespace unshuffle {

double normal_reach(double share) { return boost::math::quantile(boost::math::normal(), 0.5 * (1 + share)); }

}  // namespace unshuffle
