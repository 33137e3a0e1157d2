#include "tables/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/text.hpp"
#include "tables/cells.hpp"
#include "tables/line_ends.hpp"
#include "tables/numbers.hpp"

namespace unshuffle {
namespace {

constexpr std::string_view delimiters = ",;\t| ";  // in the order in which they are preferred
constexpr std::string_view all_but_spaces = delimiters.substr(0, 4);

/// Fields of a row by each of the delimiters.
using FieldCounts = std::array<long, delimiters.size()>;

/// The row that begins at `at`, with its line end: line ends inside quotes belong to it.
std::string_view row_at(std::string_view text, std::size_t at) {
  bool quoted = false;
  for (std::size_t end = at; end < text.size(); ++end) {
    if (text[end] == '"') quoted = !quoted;
    if (!quoted && line_ends_at(text, end)) return text.substr(at, end + 1 - at);
  }
  return text.substr(at);
}

std::string_view without_line_end(std::string_view row) {
  while (row.ends_with('\n') || row.ends_with('\r')) row.remove_suffix(1);
  return row;
}

FieldCounts fields_of(std::string_view row) {
  FieldCounts counts;
  counts.fill(1);
  bool quoted = false;
  for (const char c : row) {
    if (c == '"') quoted = !quoted;
    const auto found = quoted ? std::string_view::npos : delimiters.find(c);
    if (found != std::string_view::npos) ++counts[found];
  }
  return counts;
}

/// A few hundred rows are enough to see how a table is separated; blank lines and comments do not count.
std::vector<std::string_view> first_rows(std::string_view text) {
  constexpr std::size_t most_rows = 200, most_bytes = 1 << 16;
  std::vector<std::string_view> rows;
  for (std::size_t at = 0; at < std::min(text.size(), most_bytes) && rows.size() < most_rows;) {
    const std::string_view row = row_at(text, at);
    at += row.size();
    if (!without_line_end(row).empty() && !row.starts_with('#')) rows.push_back(without_line_end(row));
  }
  return rows;
}

bool quoted_first(std::string_view row) { return row.starts_with('"'); }

/// The header has one field for every field of the rows, or one less: R writes row names without a name for them.
struct Separation {
  char delimiter = ',';
  bool header_lacks_first = false;
  bool consistent = true;  ///< All rows have the fields of the header, more than one.
};

/// A header without delimiters over rows with one comma each: decimal commas in a single column. Row names would be
/// quoted, and a running number is more likely an index; both are left to the general rule.
bool is_column_of_decimal_commas(const std::vector<std::string_view>& rows) {
  const TextFormat commas{.delimiter = ';', .decimal = ',', .thousands = 0};
  const auto is_number = [&](std::string_view row) { return parse_number(row, commas).has_value(); };
  if (rows.size() < 3 || is_number(rows[0]) || rows[0].find(',') != std::string_view::npos) return false;
  if (!std::all_of(rows.begin() + 1, rows.end(), is_number)) return false;
  std::vector<std::string_view> wholes;
  for (std::size_t at = 1; at < rows.size(); ++at) wholes.push_back(rows[at].substr(0, rows[at].find(',')));
  std::sort(wholes.begin(), wholes.end());
  const bool distinct = std::adjacent_find(wholes.begin(), wholes.end()) == wholes.end();
  return !distinct && std::any_of(rows.begin() + 1, rows.end(),
                                  [](std::string_view row) { return row.find(',') != std::string_view::npos; });
}

/// The first delimiter by which the header and all rows have the same number of fields, more than one; by that with
/// most fields in the header if there is none, so that the complaint is about the row that breaks the rule.
Separation separation_of(const std::vector<std::string_view>& rows, std::string_view candidates) {
  if (rows.empty()) return {};
  if (candidates != " " && is_column_of_decimal_commas(rows)) return {';', false};
  FieldCounts header = fields_of(rows[0]);
  for (std::size_t k = 0; k < delimiters.size(); ++k)
    if (candidates.find(delimiters[k]) == std::string_view::npos) header[k] = 0;
  std::vector<FieldCounts> counts;
  for (std::size_t at = 1; at < rows.size(); ++at) counts.push_back(fields_of(rows[at]));
  const auto all_have = [&](std::size_t k, long fields) {
    return std::all_of(counts.begin(), counts.end(), [&](const FieldCounts& row) { return row[k] == fields; });
  };
  for (std::size_t k = 0; k < delimiters.size(); ++k)
    if (header[k] > 1 && all_have(k, header[k])) return {delimiters[k], false};
  for (std::size_t k = 0; k < delimiters.size() && counts.size() > 1; ++k) {
    const bool row_names = std::all_of(rows.begin() + 1, rows.end(), quoted_first);
    if (header[k] > 0 && all_have(k, header[k] + 1) && (header[k] > 1 || row_names)) return {delimiters[k], true};
  }
  const auto most = std::max_element(header.begin(), header.end());
  return {*most > 1 ? delimiters[static_cast<std::size_t>(most - header.begin())] : ',', false, false};
}

/// One space for every run of spaces and tabs outside quotes, and none at the ends of lines.
std::string with_single_spaces(std::string_view text) {
  std::string single;
  single.reserve(text.size());
  bool quoted = false, gap = false;
  for (const char c : text) {
    const bool line_end = c == '\n' || c == '\r';
    if (!quoted && (c == ' ' || c == '\t')) {
      gap = true;
      continue;
    }
    const bool at_start = single.empty() || single.back() == '\n' || single.back() == '\r';
    if (gap && !line_end && !at_start) single += ' ';
    gap = false;
    if (c == '"') quoted = !quoted;
    single += c;
  }
  return single;
}

bool has_number_column(const std::vector<std::string_view>& rows) {
  std::vector<bool> numbers;
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    std::size_t field = 0, begin = 0;
    bool quoted = false;
    for (std::size_t at = 0; at <= row->size(); ++at) {
      if (at < row->size() && (*row)[at] == '"') quoted = !quoted;
      if (at < row->size() && ((*row)[at] != ' ' || quoted)) continue;
      if (numbers.size() <= field) numbers.push_back(true);
      numbers[field] = numbers[field] && parse_number(row->substr(begin, at - begin)).has_value();
      begin = at + 1;
      ++field;
    }
  }
  return std::find(numbers.begin(), numbers.end(), true) != numbers.end();
}

/// Spreadsheets write "sep=;" as a first line and read the delimiter from it.
std::optional<char> delimiter_line(std::string_view row) {
  row = without_line_end(row);
  const bool says = row.size() == 5 && (row.starts_with("sep=") || row.starts_with("SEP="));
  return says && delimiters.find(row[4]) != std::string_view::npos ? std::optional(row[4]) : std::nullopt;
}

bool holds_numbers_only(std::string_view row, char delimiter) {
  for (;;) {
    const auto end = row.find(delimiter);
    if (!parse_number(row.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    row.remove_prefix(end + 1);
  }
}

/// Lines above the header: comments, and blank lines among them.
struct Preamble {
  std::size_t size = 0;
  long lines = 0;
};

/// The last comment is the header if numbers follow it and it has a name for each of them.
Preamble preamble_of(std::string_view text, const std::vector<std::string_view>& rows, char delimiter) {
  Preamble now, before_last_comment;
  std::string_view last_comment;
  while (now.size < text.size()) {
    const std::string_view row = row_at(text, now.size);
    const bool comment = row.starts_with('#') && !is_spreadsheet_error(row.substr(0, row.find(delimiter)));
    if (!comment && (last_comment.empty() || !without_line_end(row).empty())) break;
    if (comment) {
      before_last_comment = now;
      last_comment = without_line_end(row);
    }
    now.size += row.size();
    now.lines += count_line_ends(row);
  }
  if (last_comment.empty() || rows.empty()) return now;
  const auto at = delimiters.find(delimiter);
  const bool is_header = holds_numbers_only(rows[0], delimiter) && !holds_numbers_only(last_comment, delimiter) &&
                         fields_of(last_comment)[at] == fields_of(rows[0])[at];
  return is_header ? before_last_comment : now;
}

/// "# note" is a comment; "#ff0000,3" is a row if it has as many fields as the header.
bool is_comment(std::string_view row, char delimiter, long fields) {
  if (!row.starts_with('#') || is_spreadsheet_error(without_line_end(row.substr(0, row.find(delimiter))))) return false;
  if (row.size() > 1 && row[1] == ' ') return true;
  return fields == 1 || fields_of(row)[delimiters.find(delimiter)] != fields;
}

/// Cuts the comments out of the text behind the header.
void leave_out_comments(Layout& layout, std::string_view text) {
  const bool any = text.find('#') != std::string_view::npos;
  if (!any && !text.empty()) layout.stretches = {text};
  if (!any) return;
  const char delimiter = layout.format.delimiter;
  const std::string_view header = row_at(text, 0);
  const long fields = fields_of(header)[delimiters.find(delimiter)];
  std::size_t begin = 0;
  for (std::size_t at = header.size(); at < text.size();) {
    const std::string_view row = row_at(text, at);
    if (is_comment(row, delimiter, fields)) {
      if (at > begin) layout.stretches.push_back(text.substr(begin, at - begin));
      begin = at + row.size();
      layout.comments += count_line_ends(row);
    }
    at += row.size();
  }
  if (begin < text.size()) layout.stretches.push_back(text.substr(begin));
}

}  // namespace

Layout layout_of(std::string_view text, Separators separators) {
  Layout layout;
  const std::string_view first = row_at(text, 0);
  const std::optional<char> told = delimiter_line(first);
  if (told) {
    text.remove_prefix(first.size());
    ++layout.first_line;
  }
  const std::vector<std::string_view> rows = first_rows(text);
  const Separation separation = separation_of(rows, separators == Separators::spaces ? " " : all_but_spaces);
  layout.format.delimiter = told.value_or(separation.delimiter);
  layout.format.header_lacks_first = separation.header_lacks_first;
  const Preamble preamble = preamble_of(text, rows, layout.format.delimiter);
  text.remove_prefix(preamble.size);
  layout.first_line += preamble.lines;
  layout.comments = preamble.lines;
  leave_out_comments(layout, text);
  return layout;
}

std::string single_spaced(std::string_view text) {
  const std::vector<std::string_view> rows = first_rows(text);
  if (rows.size() < 2 || rows[1].find_first_of(" \t") == std::string_view::npos) return {};
  if (delimiter_line(row_at(text, 0)) || separation_of(rows, all_but_spaces).consistent) return {};
  std::vector<std::string> single;
  for (const std::string_view row : rows) single.push_back(with_single_spaces(row));
  const std::vector<std::string_view> views(single.begin(), single.end());
  if (!separation_of(views, " ").consistent || !has_number_column(views)) return {};
  return with_single_spaces(text);
}

std::vector<std::string> described(const Layout& layout) {
  std::vector<std::string> words;
  const TextFormat& format = layout.format;
  if (format.delimiter == ';') words.emplace_back("semicolon-separated");
  if (format.delimiter == '\t') words.emplace_back("tab-separated");
  if (format.delimiter == '|') words.emplace_back("separated by |");
  if (format.delimiter == ' ') words.emplace_back("separated by spaces");
  if (format.decimal == ',') words.emplace_back("decimal commas");
  if (format.decimal == '.' && format.thousands == ',') words.emplace_back("commas between thousands");
  if (format.decimal == '.' && format.thousands == ' ') words.emplace_back("spaces between thousands");
  if (format.decimal == '.' && format.thousands == '\'') words.emplace_back("apostrophes between thousands");
  if (layout.comments > 0)
    words.push_back(fmt::format("{} comment line{} skipped", layout.comments, layout.comments == 1 ? "" : "s"));
  return words;
}

}  // namespace unshuffle
