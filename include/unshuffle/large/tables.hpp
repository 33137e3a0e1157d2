// Two CSV tables too large for memory, or for one machine: read in pieces, of which every process keeps a share.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/large/pieces.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle {
namespace large UNSHUFFLE_EXPORT {

struct ReadOptions {
  std::string scratch{};        ///< Folder for the rows of this process; empty: they stay in memory.
  Index piece_rows = 1 << 17;   ///< The unit of work.
  Index sample_rows = 200'000;  ///< Rows of either table that every process gets.
};

struct LargeTables {
  Pieces responses;  ///< This process's share: y in the first column, then x.
  Pieces features;   ///< Likewise z.
  double response_rows = 0;
  double feature_rows = 0;  ///< Over all processes, as above.
  bool cut_alike = false;   ///< Pieces of equal number have equally many rows, in every process.
  ColumnChoice columns{};   ///< With everything filled in.
  std::vector<std::string> notes{};
  /// Rows evenly spaced over the tables, the same in every process; rows of equal number stay beside each other where
  /// the tables are equally long.
  Problem sample{};
};

/// The files of a side, each with the same header, are concatenated into one table. No features: one table holds both
/// sides. Groups and weights are not supported. Quotes are allowed in headers only.
[[nodiscard]] LargeTables read_tables_in_pieces(const std::vector<std::string>& responses,
                                                const std::vector<std::string>& features, ColumnChoice columns,
                                                Team& team, const ReadOptions& options = {});

/// Files of that name; with * or ? in it, all that match, sorted by name. Throws BadData when there are none.
[[nodiscard]] std::vector<std::string> files_named(const std::string& pattern);

}  // namespace large
}  // namespace unshuffle
