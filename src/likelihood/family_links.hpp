// The likelihood of responses of any law when the links are unknown, within groups or altogether.
//
// Small groups are summed exactly, whatever the law and wherever features are; larger ones of an exponential family
// without x go by the transport plan, and binary ones of some hundreds of rows by counts. docs/mathematics.md §18.3,
// §18.4.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "likelihood/likelihood.hpp"
#include "links/permanent.hpp"
#include "unshuffle/families/family.hpp"

namespace unshuffle {

class FamilyLinks {
 public:
  /// All must outlive it. Throws InvalidInput for groups it cannot sum.
  FamilyLinks(const Problem& problem, const Model& bound, const Family& family, const EvaluatorOptions& plan);
  ~FamilyLinks();
  FamilyLinks(const FamilyLinks&) = delete;
  FamilyLinks& operator=(const FamilyLinks&) = delete;

  [[nodiscard]] Index parameters() const;  ///< Of (w, τ).
  [[nodiscard]] const LinkSums& sums() const { return sums_; }
  [[nodiscard]] Index groups() const { return sums_.exact + sums_.counts + sums_.by_plan; }

  /// Minus the log-likelihood. The Hessian of groups summed one by one is the sum of squared scores, which is its mean;
  /// `curvature` has the exact one.
  [[nodiscard]] Sample at(const Vector& theta, bool with_hessian);
  [[nodiscard]] Matrix curvature(const Vector& theta);
  /// Σ of squared scores of the groups.
  [[nodiscard]] Matrix scores(const Vector& theta);

 private:
  struct Group;
  struct Parts;
  void add_groups(const Vector& theta, Sample& sum, Matrix& squares) const;
  void add_plan(const Vector& theta, bool with_hessian, Sample& sum);
  Sample evaluate(const Vector& theta, bool with_hessian, Matrix& squares);

  std::unique_ptr<Parts> parts_;
  LinkSums sums_;
};

}  // namespace unshuffle
