// The outer objective of one block of rows with several outputs and an additive model: C_ij = |t_i - s_j|², never
// formed.
#pragma once

#include "objective/block_objective.hpp"
#include "transport/cloud_transport.hpp"

namespace unshuffle {

class CloudBlock {
 public:
  /// `log_absence` of the block's responses, where they may have no partner; empty: none.
  CloudBlock(BlockRows responses, BlockRows features, const EvaluatorOptions& options, Vector log_absence);

  BlockValue solve(Matrix t, Matrix s, double epsilon, Objective objective);
  /// Derivative of the objective in every t (or s).
  [[nodiscard]] Matrix gradient(Side side, Objective objective) { return transport_.gradient(side, objective); }
  void forget() { transport_.forget(); }

  /// Fills the block's part of `links` and remembers potentials for plan_entry().
  void link(SoftLinks& links);
  [[nodiscard]] double plan_entry(Index i, Index j) const;
  [[nodiscard]] double cost_entry(Index i, Index j) const { return (t_.row(i) - s_.row(j)).squaredNorm(); }
  /// Of points that are the block's.
  [[nodiscard]] double largest_cost(const Matrix& t, const Matrix& s) const;
  /// By the rows of the tables.
  [[nodiscard]] std::vector<PlanEntry> strongest_links(Index most) const;
  [[nodiscard]] const BlockRows& rows(Side side) const { return side == Side::response ? responses_ : features_; }

 private:
  BlockRows responses_, features_;
  transport::MarginalPolicies policies_;
  transport::CloudTransport transport_;
  Matrix t_, s_;
  Vector u_, v_;
  double epsilon_ = 0;
  double compression_error_ = 0;
};

}  // namespace unshuffle
