// Two tables that belong together but whose row links are lost.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A link that is known: this row of D1 and this row of D2 are one record.
struct KnownPair {
  Index response_row;
  Index feature_row;
};

/// Soft evidence for a link: the prior odds of this pair relative to unlisted pairs, which have 1.
struct PairWeight {
  Index response_row;
  Index feature_row;
  double weight;  ///< > 0; below 1 is evidence against the pair.
};

/// A key in both tables on which true partners mostly agree; groups are the hard form.
struct SoftKey {
  std::vector<Index> response_labels;  ///< n; negative: unknown, no evidence for or against any pair.
  std::vector<Index> feature_labels;   ///< m.
  double agreement;                    ///< How often true partners have equal labels, above 0 and below 1.
};

/// What the row order implies about the links.
enum class RowOrder {
  unknown,          ///< Not stated; tables of equal length may be in order.
  probably_linked,  ///< Row i of D1 probably belongs to row i of D2.
  unrelated,        ///< No information.
};

/// What is known of rows beside their values; whatever is empty is not known.
struct RowFacts {
  Vector response_offset{};  ///< n, part of the linear predictor with the coefficient one.
  Vector feature_offset{};   ///< m, likewise.
  Vector trials{};           ///< n: of these, a binomial response counts the successes.
  Vector event{};  ///< n: 1 where the response is the time of an event, 0 where it was only awaited until then.

  // Of rows in order, how reliable link i is:
  Matrix mismatch{};                          ///< n×q: the log odds of a right link are linear in these columns.
  std::vector<std::string> mismatch_names{};  ///< One per column.
  Vector wrong_rate{};                        ///< n: the probability that the link is wrong, above 0 and below 1.
  double audit = 0;                           ///< Links that were examined to find `wrong_rate`; 0: it is exact.

  [[nodiscard]] bool describes_links() const { return mismatch.cols() > 0 || wrong_rate.size() > 0; }
};

/// D1 = (x, y) with n rows and D2 = z with m rows; n and m may differ. Only y and z are required.
struct Problem {
  Matrix y{};  ///< n×o, the responses.
  Matrix x{};  ///< n×d, features known on the response side; leave empty when there are none.
  Matrix z{};  ///< m×e, the features whose links are lost.

  Vector response_weights{};  ///< n, non-negative, any scale; empty means equal.
  Vector feature_weights{};   ///< m, likewise.

  std::vector<Index> response_groups{};  ///< n labels; rows may only match rows of an equal label. Empty: no groups.
  std::vector<Index> feature_groups{};   ///< m labels.

  std::vector<KnownPair> known{};    ///< Links known for certain.
  std::vector<PairWeight> prior{};   ///< Soft evidence pair by pair, no pair twice.
  std::vector<SoftKey> soft_keys{};  ///< Soft evidence by keys; all evidence multiplies.

  RowOrder order = RowOrder::unknown;
  RowFacts facts{};

  std::vector<std::string> y_names{};  ///< Column names; filled with y (or y1..), x1.., z1.. when left empty.
  std::vector<std::string> x_names{};
  std::vector<std::string> z_names{};

  [[nodiscard]] Index responses() const { return y.rows(); }
  [[nodiscard]] Index features() const { return z.rows(); }
  [[nodiscard]] Index outputs() const { return y.cols(); }
  [[nodiscard]] bool order_is_a_hint() const { return order == RowOrder::probably_linked; }
  [[nodiscard]] bool has_prior() const { return !prior.empty() || !soft_keys.empty(); }
};

/// Throws BadData naming table, row and value for anything no method can use (shapes, NaN, weights, groups, pairs).
void validate(const Problem& problem);

/// Throws BadData when a fit of that many parameters is meaningless: fewer than two rows on a side, or fewer responses
/// than parameters.
void require_enough_rows(const Problem& problem, Index parameters);

/// Throws BadData naming the first feature column that is constant, or nearly so relative to its mean; with an
/// intercept its coefficient would be undetermined.
void require_varying_features(const Problem& problem);

/// Throws BadData naming the first response that is the same in every row.
void require_varying_responses(const Problem& problem);

/// Throws BadData naming the first column whose numbers are too large, or vary too little, to be squared.
void require_scales(const Problem& problem);

/// The standard deviation of every column.
[[nodiscard]] Vector column_spreads(const Matrix& values);

/// The problem with weights filled in (each side summing to one) and every column named.
[[nodiscard]] Problem completed(Problem problem);

/// Rows of both sides that may match each other; a problem without groups or known pairs is one block.
struct Block {
  std::vector<Index> response_rows;
  std::vector<Index> feature_rows;
  double share;  ///< Mass of the block: the response weight it holds.
};

/// One block per group label that occurs on both sides, by ascending label, then one per known pair. Rows whose label
/// has no partner on the other side are in no block; the blocks' shares then sum to less than one.
[[nodiscard]] std::vector<Block> blocks_of(const Problem& problem);

/// Number of rows that cannot have a partner under any linking, because their group has more rows than on the other
/// side.
struct LeftOver {
  Index responses;
  Index features;
};
[[nodiscard]] LeftOver rows_left_over(const Problem& problem);

/// Sum over the soft keys of the log of the weight that they give to each pair of these rows.
[[nodiscard]] Matrix log_weights_of_keys(const Problem& problem, const std::vector<Index>& response_rows,
                                         const std::vector<Index>& feature_rows);

}  // namespace unshuffle
