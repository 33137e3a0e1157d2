// A smooth distribution of the responses, for those without a partner.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Independent outputs, each a mixture of t distributions with three degrees of freedom around quantiles of the data:
/// heavy tails, because the farthest response must not be forced to have a partner, and smooth on the scale of the
/// spread, which the compressed transport requires.
class ResponseLaw {
 public:
  explicit ResponseLaw(const Matrix& responses);

  [[nodiscard]] double log_density(const VectorRef& outputs) const;

 private:
  Matrix centres_;  ///< One column per output.
  Vector scale_;
};

}  // namespace unshuffle
