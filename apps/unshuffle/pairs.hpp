// A matching as CSV: the pairs alone, or the two tables joined along them.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/tables/prepare.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::app {

/// The same pairs by the rows of the files; rows that were dropped when reading are unmatched.
[[nodiscard]] Matching in_file_rows(Matching matching, const Preparation& rows);

/// response_row,feature_row,probability with rows counted from 0; unmatched rows follow with the rest empty.
[[nodiscard]] std::string pairs_csv(const Matching& matching);

/// sample,response_row,feature_row of complete sets of links, sets and rows of the files counted from 0.
[[nodiscard]] std::string samples_csv(const std::vector<LinkSet>& sets, const Preparation& rows);

enum class Join { inner, left, right };

/// Columns of both tables side by side and the probability of the link. Left keeps every response row, right every
/// feature row; what is missing is empty. A name both tables use gets the suffix _feature on the right. Tables must
/// have been read with KeepText::always.
[[nodiscard]] std::string joined_csv(const Matching& matching, const Table& responses, const Table& features, Join join,
                                     bool spreadsheet_safe);

}  // namespace unshuffle::app
