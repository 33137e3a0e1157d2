// A smooth law of the responses, for those that have no partner.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Outputs independent of each other, each a mixture of t laws of three degrees of freedom around quantiles of what is
/// there: heavy tails, as the farthest response must not be forced to have a partner, and smooth on the scale of their
/// spread, as the compressed transport needs it.
class ResponseLaw {
 public:
  explicit ResponseLaw(const Matrix& responses);

  [[nodiscard]] double log_density(const VectorRef& outputs) const;

 private:
  Matrix centres_;  ///< One column per output.
  Vector scale_;
};

}  // namespace unshuffle
