// The two unlinked tables, and hard links between them.
#pragma once

#include "estimators/estimate.hpp"
#include "likelihood/candidate_links.hpp"
#include "links/linked.hpp"
#include "objective/costs.hpp"

namespace unshuffle {

class UnlinkedRows {
 public:
  /// Both must outlive it.
  UnlinkedRows(const Problem& problem, const Model& bound);

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] const TwoTables& tables() const { return tables_; }

  /// The pairs of least Σ|y - f|² at w, block by block, as many as possible: sorted for one output and an additive
  /// model, else by optimal assignment.
  [[nodiscard]] Links best(const VectorRef& w) const;

  /// The same among some rows of one block.
  [[nodiscard]] Links best_among(const std::vector<Index>& responses, const std::vector<Index>& features,
                                 const VectorRef& w) const;

  [[nodiscard]] LinkedRows linked(const Links& links) const;

  /// One per link, mean one; empty when all rows weigh the same.
  [[nodiscard]] Vector weights(const Links& links) const;

 private:
  const Problem& problem_;
  const Model& bound_;
  TwoTables tables_;
  std::vector<Block> blocks_;
  bool weighted_;
};

void append(Links& links, const Links& more);

/// Links in the order given; throws BadData when they are too few for the parameters.
[[nodiscard]] Links order_to_fit(const Input& input);

/// Links in the order given as candidates, the known ones in front.
[[nodiscard]] CandidateLinks candidates_of(const Problem& problem, const Model& bound, const Links& links);

/// Least squares on given links as a method's whole answer.
[[nodiscard]] Estimate regression_on(const Input& input, const UnlinkedRows& rows, const Links& links,
                                     const std::string& start);

/// For links chosen by the method: ordinary standard errors would ignore that.
void forget_std_errors(Estimate& estimate);

/// Throws InvalidInput if the tables differ in length, for methods that need rows in order.
void require_rows_in_order(const Input& input, std::string_view method);

/// Throws InvalidInput unless f is linear in w.
void require_linear_model(const Input& input, std::string_view method);

}  // namespace unshuffle
