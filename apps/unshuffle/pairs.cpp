#include "pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "options.hpp"

namespace unshuffle::app {
namespace {

using MaybeRow = std::optional<Index>;

void append_cells(std::string& out, const Table& table, MaybeRow row, bool spreadsheet_safe) {
  for (const Column& column : table.columns) {
    if (row) out += csv_cell(column.text[static_cast<std::size_t>(*row)], spreadsheet_safe);
    out += ',';
  }
}

struct Line {
  MaybeRow response;
  MaybeRow feature;
  std::optional<double> probability;
};

/// Rows in the order of the side that is kept whole.
std::vector<Line> lines_of(const Matching& matching, Join join, Index responses, Index features) {
  std::vector<Line> lines;
  if (join == Join::inner) {
    for (const Match& match : matching.pairs)
      lines.push_back({match.response_row, match.feature_row, match.probability});
    return lines;
  }
  const bool left = join == Join::left;
  lines.resize(static_cast<std::size_t>(left ? responses : features));
  for (std::size_t row = 0; row < lines.size(); ++row) {
    (left ? lines[row].response : lines[row].feature) = static_cast<Index>(row);
  }
  for (const Match& match : matching.pairs) {
    lines[static_cast<std::size_t>(left ? match.response_row : match.feature_row)] = {
        match.response_row, match.feature_row, match.probability};
  }
  return lines;
}

/// Dropped rows are unmatched too.
std::vector<Index> unmatched_in_file(const std::vector<Index>& unmatched, const KeptRows& kept) {
  std::vector<Index> rows;
  for (const Index row : unmatched) rows.push_back(kept.rows[static_cast<std::size_t>(row)]);
  for (Index row = 0; row < kept.of; ++row)
    if (!std::binary_search(kept.rows.begin(), kept.rows.end(), row)) rows.push_back(row);
  std::sort(rows.begin(), rows.end());
  return rows;
}

Index in_file(const KeptRows& kept, Index row) { return kept.all ? row : kept.rows[static_cast<std::size_t>(row)]; }

}  // namespace

Matching in_file_rows(Matching matching, const Preparation& rows) {
  for (Match& pair : matching.pairs) {
    pair.response_row = in_file(rows.responses, pair.response_row);
    pair.feature_row = in_file(rows.features, pair.feature_row);
  }
  if (!rows.responses.all)
    matching.unmatched_responses = unmatched_in_file(matching.unmatched_responses, rows.responses);
  if (!rows.features.all) matching.unmatched_features = unmatched_in_file(matching.unmatched_features, rows.features);
  return matching;
}

std::string pairs_csv(const Matching& matching) {
  std::string out = "response_row,feature_row,probability\n";
  for (const Match& match : matching.pairs) {
    out += fmt::format("{},{},", match.response_row, match.feature_row);
    append_number(out, match.probability);
    out += '\n';
  }
  for (const Index row : matching.unmatched_responses) out += fmt::format("{},,\n", row);
  for (const Index row : matching.unmatched_features) out += fmt::format(",{},\n", row);
  return out;
}

std::string samples_csv(const std::vector<LinkSet>& sets, const Preparation& rows) {
  std::string out = "sample,response_row,feature_row\n";
  for (std::size_t sample = 0; sample < sets.size(); ++sample) {
    for (const KnownPair& pair : sets[sample]) {
      out += fmt::format("{},{},{}\n", sample, in_file(rows.responses, pair.response_row),
                         in_file(rows.features, pair.feature_row));
    }
  }
  return out;
}

std::string joined_csv(const Matching& matching, const Table& responses, const Table& features, Join join,
                       bool spreadsheet_safe) {
  std::string out;
  for (const Column& column : responses.columns) out += csv_cell(column.name, spreadsheet_safe) + ',';
  for (const Column& column : features.columns) {
    const bool clash = responses.find(column.name) != nullptr;
    out += csv_cell(clash ? column.name + "_feature" : column.name, spreadsheet_safe) + ',';
  }
  out += "probability\n";
  for (const Line& line : lines_of(matching, join, responses.rows, features.rows)) {
    append_cells(out, responses, line.response, spreadsheet_safe);
    append_cells(out, features, line.feature, spreadsheet_safe);
    if (line.probability) append_number(out, *line.probability);
    out += '\n';
  }
  return out;
}

}  // namespace unshuffle::app
