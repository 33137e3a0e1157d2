#include "link_options.hpp"

#include <fmt/format.h>

#include "core/read_json.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle::app {

void add_link_options(CLI::App& app, LinkOptions& options) {
  app.add_option(
         "--hint", options.hint,
         "rows: row i of one table probably belongs to row i of the other; none: the order carries no information. By "
         "default, auto tests whether it does, and other methods assume rows for one table, none for two.")
      ->check(CLI::IsMember({"rows", "none"}));
  app.add_option(
      "--known", options.known,
      "CSV with columns response_row,feature_row, counted from 0: links known for certain. Methods keep them; "
      "oracle uses only these.");
  app.add_option(
      "--prior", options.prior,
      "CSV with columns response_row,feature_row,weight, rows counted from 0: the prior odds > 0 of that pair relative "
      "to the pairs not listed, which have 1. Needs a matrix of all pairs; methods auto, entropic, robot and "
      "robot-robust.");
  app.add_option("--truth", options.truth, "truth.json of unshuffle simulate; the oracle takes the links from it.");
}

RowOrder order_of(const LinkOptions& options, bool one_table) {
  if (options.hint == "none") return RowOrder::unrelated;
  return options.hint == "rows" || one_table ? RowOrder::probably_linked : RowOrder::unknown;
}

std::vector<KnownPair> known_pairs(const LinkOptions& options) {
  if (options.known.empty()) return {};
  return known_pairs_of(read_csv(options.known));
}

std::vector<PairWeight> pair_weights(const LinkOptions& options) {
  if (options.prior.empty()) return {};
  return pair_weights_of(read_csv(options.prior));
}

std::vector<std::string> inputs_of(const LinkOptions& options) { return {options.known, options.prior, options.truth}; }

std::vector<KnownPair> true_pairs(const std::string& path) {
  const auto parsed = read_json(read_file(path), path);
  const auto found = parsed.is_object() ? parsed.find("permutation") : parsed.end();
  if (!parsed.is_object() || found == parsed.end() || !found->is_array()) {
    throw BadData(fmt::format("{}: a truth.json with the key \"permutation\" was expected", path));
  }
  std::vector<KnownPair> pairs;
  for (const auto& row : *found) {
    if (!row.is_number_unsigned()) {
      throw BadData(fmt::format("{}: \"permutation\" holds {}; row numbers from 0 were expected", path,
                                row.dump().substr(0, 40)));
    }
    pairs.push_back({Index(pairs.size()), row.get<Index>()});
  }
  return pairs;
}

}  // namespace unshuffle::app
