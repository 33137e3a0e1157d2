#include "tables/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text.hpp"
#include "tables/cells.hpp"
#include "tables/line_ends.hpp"

namespace unshuffle {
namespace {

constexpr std::string_view delimiters = ",;\t|";  // in the order in which they are preferred

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
Separation separation_of(const std::vector<std::string_view>& rows) {
  if (rows.empty()) return {};
  if (is_column_of_decimal_commas(rows)) return {';', false};
  const FieldCounts header = fields_of(rows[0]);
  std::vector<FieldCounts> counts;
  for (std::size_t at = 1; at < rows.size(); ++at) counts.push_back(fields_of(rows[at]));
  const auto all_have = [&](std::size_t k, long fields) {
    return std::all_of(counts.begin(), counts.end(), [&](const FieldCounts& row) { return row[k] == fields; });
  };
  for (std::size_t k = 0; k < delimiters.size(); ++k)
    if (header[k] > 1 && all_have(k, header[k])) return {delimiters[k], false};
  for (std::size_t k = 0; k < delimiters.size() && counts.size() > 1; ++k) {
    const bool row_names = std::all_of(rows.begin() + 1, rows.end(), quoted_first);
    if (all_have(k, header[k] + 1) && (header[k] > 1 || row_names)) return {delimiters[k], true};
  }
  const auto most = std::max_element(header.begin(), header.end());
  return {*most > 1 ? delimiters[static_cast<std::size_t>(most - header.begin())] : ',', false};
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

/// The digits before the decimal separator, in groups of three if they are separated at all. Appends them without
/// separators and returns what follows; none: they are grouped in another way.
std::optional<std::string_view> append_whole_part(std::string& plain, std::string_view text, char thousands) {
  const auto digits_at = [&](std::size_t at) {
    std::size_t count = 0;
    while (at + count < text.size() && std::isdigit(static_cast<unsigned char>(text[at + count])) != 0) ++count;
    return count;
  };
  std::size_t at = digits_at(0);
  plain += text.substr(0, at);
  if (thousands == 0 || at >= text.size() || text[at] != thousands) return text.substr(at);
  if (at == 0 || at > 3) return std::nullopt;
  while (at < text.size() && text[at] == thousands) {
    if (digits_at(at + 1) != 3) return std::nullopt;
    plain += text.substr(at + 1, 3);
    at += 4;
  }
  return text.substr(at);
}

/// Unbroken spaces, which French and Swiss programs put between groups of digits, as plain ones.
std::string with_plain_spaces(std::string_view text) {
  std::string plain(text);
  for (const std::string_view space : {"\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x89"}) {
    for (auto at = plain.find(space); at != std::string::npos; at = plain.find(space))
      plain.replace(at, space.size(), " ");
  }
  return plain;
}

/// Whether every cell that is not missing is a number in this format, and there is one.
bool writes_numbers(const Column& column, const TextFormat& format) {
  bool any = false;
  for (const std::string& cell : column.text) {
    if (is_missing_number(cell)) continue;
    if (!parse_number(cell, format)) return false;
    any = true;
  }
  return any;
}

}  // namespace

Layout layout_of(std::string_view text) {
  Layout layout;
  const std::string_view first = row_at(text, 0);
  const std::optional<char> told = delimiter_line(first);
  if (told) {
    text.remove_prefix(first.size());
    ++layout.first_line;
  }
  const std::vector<std::string_view> rows = first_rows(text);
  const Separation separation = separation_of(rows);
  layout.format.delimiter = told.value_or(separation.delimiter);
  layout.format.header_lacks_first = separation.header_lacks_first;
  const Preamble preamble = preamble_of(text, rows, layout.format.delimiter);
  text.remove_prefix(preamble.size);
  layout.first_line += preamble.lines;
  layout.comments = preamble.lines;
  leave_out_comments(layout, text);
  return layout;
}

std::optional<double> parse_number(std::string_view text, const TextFormat& format) {
  if (format.decimal == '.' && format.thousands == 0) return parse_number(text);
  const std::string spaced = format.thousands == ' ' ? with_plain_spaces(text) : std::string(text);
  std::string_view left(spaced);
  std::string plain;
  if (left.starts_with('-')) plain = "-";
  if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
  if (left.starts_with('-') || left.starts_with('+')) return std::nullopt;  // +-1 is no number
  const auto rest = append_whole_part(plain, left, format.thousands);
  if (!rest) return std::nullopt;
  left = *rest;
  if (left.starts_with(format.decimal)) {
    plain += '.';
    left.remove_prefix(1);
  }
  if (left.find_first_of(".,+' ") == 0) return std::nullopt;
  plain += left;
  return parse_number(plain);
}

std::optional<TextFormat> number_format_of(const Table& table) {
  struct Candidate {
    char decimal, thousands;
  };
  constexpr std::array<Candidate, 6> candidates{
      {{',', '.'}, {'.', ','}, {'.', ' '}, {'.', '\''}, {',', ' '}, {',', '\''}}};
  std::array<Index, candidates.size()> columns{};
  for (const Column& column : table.columns) {
    if (column.numeric()) continue;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      TextFormat format = table.format;
      format.decimal = candidates[k].decimal;
      format.thousands = candidates[k].thousands;
      if (!writes_numbers(column, table.format) && writes_numbers(column, format)) ++columns[k];
    }
  }
  const auto best = std::max_element(columns.begin(), columns.end());
  if (*best == 0) return std::nullopt;
  // 1,234 is one or a thousand. Programs separate by semicolons where the comma is the decimal separator.
  const bool ambiguous = columns[0] == *best && columns[1] == *best;
  if (ambiguous && table.format.delimiter != ';') return std::nullopt;
  TextFormat format = table.format;
  format.decimal = candidates[static_cast<std::size_t>(best - columns.begin())].decimal;
  format.thousands = candidates[static_cast<std::size_t>(best - columns.begin())].thousands;
  return format;
}

std::vector<std::string> described(const Layout& layout) {
  std::vector<std::string> words;
  const TextFormat& format = layout.format;
  if (format.delimiter == ';') words.emplace_back("semicolon-separated");
  if (format.delimiter == '\t') words.emplace_back("tab-separated");
  if (format.delimiter == '|') words.emplace_back("separated by |");
  if (format.decimal == ',') words.emplace_back("decimal commas");
  if (format.decimal == '.' && format.thousands == ',') words.emplace_back("commas between thousands");
  if (format.decimal == '.' && format.thousands == ' ') words.emplace_back("spaces between thousands");
  if (format.decimal == '.' && format.thousands == '\'') words.emplace_back("apostrophes between thousands");
  if (layout.comments > 0)
    words.push_back(fmt::format("{} comment line{} skipped", layout.comments, layout.comments == 1 ? "" : "s"));
  return words;
}

}  // namespace unshuffle
