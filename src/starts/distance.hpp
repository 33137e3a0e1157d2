// The difference between the predictions of two sets of parameters.
#pragma once

#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// Root mean square difference of predictions in standard deviations of y, over some rows paired at random.
class PredictiveDistance {
 public:
  PredictiveDistance(const Problem& problem, const Model& bound);
  [[nodiscard]] double operator()(const VectorRef& a, const VectorRef& b) const;

 private:
  const Model& bound_;
  Matrix x_, z_;
  double unit_ = 1;
};

}  // namespace unshuffle
