// Blocks of one row on either side: known pairs, and groups of two. Their plan is the pair whatever ε is, so a million
// of them take no more than a regression on linked rows.
#pragma once

#include <vector>

#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

/// Both tables through the model's basis.
struct PairTables {
  const Model& model;
  const Matrix& x;
  const Matrix& y;
  const Matrix& z;
};

class SinglePairs {
 public:
  /// Whether pairs under these sums and this objective have no other terms than their cost and its entropy.
  [[nodiscard]] static bool can_be_told(const EvaluatorOptions& options);

  /// `scale` is what the pair's cost counts in the objective.
  void add(Index response_row, Index feature_row, double scale);
  [[nodiscard]] std::size_t size() const { return responses_.size(); }

  /// Costs at w; whatever follows is of these.
  void evaluate(const PairTables& tables, const VectorRef& w);
  [[nodiscard]] double largest_cost() const { return size() > 0 ? cost_.maxCoeff() : 0; }
  [[nodiscard]] double scale(std::size_t pair) const { return scales_[pair]; }
  [[nodiscard]] double cost(std::size_t pair) const { return cost_[static_cast<Index>(pair)]; }
  [[nodiscard]] PlanEntry entry(std::size_t pair, double rows) const {
    return {responses_[pair], features_[pair], scales_[pair] / rows};
  }
  /// Adds objective and transport cost.
  void add_to(Evaluation& evaluation, Objective objective, double epsilon) const;
  void pull_back(const PairTables& tables, const VectorRef& w, Vector& gradient) const;
  /// For one response: the derivatives in t = y - g(x) and s = h(z), row by row.
  void add_slopes(Matrix& on_t, Matrix& on_s) const;
  [[nodiscard]] Matrix hessian(const Matrix& t_jacobian, const Matrix& s_jacobian) const;

  void link(SoftLinks& links) const;

 private:
  std::vector<Index> responses_, features_;
  std::vector<double> scales_;
  Matrix residual_;
  Vector cost_;
};

}  // namespace unshuffle
