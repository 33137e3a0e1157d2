// Groups whose links are summed exactly, with normal noise of one variance: minus the log-likelihood and its
// derivatives.
#pragma once

#include <functional>
#include <vector>

#include "optimise/optimiser.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle {

class ExactGroups {
 public:
  /// Log density of a response without a partner; none: no group has more responses than features.
  using LogAbsence = std::function<double(const VectorRef&)>;

  /// `problem` and `bound` must outlive it; blocks of `problem`, of at most most_summed_rows on either side.
  ExactGroups(const Problem& problem, const Model& bound, std::vector<Block> groups, const LogAbsence& log_absence);

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  /// Whether at() has a Hessian: one output and an additive model.
  [[nodiscard]] bool has_hessian() const { return problem_.outputs() == 1 && bound_.additive() != nullptr; }

  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  /// Of (w, log ε), ε twice the variance; the Hessian is exact.
  [[nodiscard]] Sample at(const Vector& w, double epsilon, bool with_hessian) const;

 private:
  struct Group {
    std::vector<Index> responses, features;
    Matrix log_weights;  ///< What the noise does not say of the pairs; empty: nothing.
  };
  struct Tables;
  struct Sums;
  void add(const Group& group, const Tables& tables, double epsilon, Sums& sums) const;
  void add_slopes(const Group& group, const Tables& tables, const Matrix& weights, Sums& sums) const;
  void add_hessian(const Group& group, const Tables& tables, double epsilon, const Matrix& probability,
                   const Matrix& covariance, Sums& sums) const;
  [[nodiscard]] Matrix scores_of(const Group& group, const Tables& tables, const Matrix& cost, bool turned) const;
  [[nodiscard]] Matrix cost_of(const Group& group, const Tables& tables) const;
  void weigh_by_prior();

  const Problem& problem_;
  const Model& bound_;
  std::vector<Group> groups_;
  Matrix x_, z_;  ///< Through the model's basis.
  double constant_ = 0;
};

}  // namespace unshuffle
