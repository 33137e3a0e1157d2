// Tables as users keep them: text files with a header line, separated by commas or otherwise.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/files.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A column is numeric when every cell is a finite number, otherwise text. A column of numbers with a stray cell is
/// text too; it remembers the cell, so that a request for its numbers can report where it is.
struct Column {
  std::string name;
  std::vector<double> numbers{};    ///< One per row, when numeric.
  std::vector<std::string> text{};  ///< One per row as written, when not numeric or on request.

  long first_text_line = 0;    ///< Line of the first cell that is not a finite number; 0 when there is none.
  std::string first_text{};    ///< What that cell holds.
  bool holds_numbers = false;  ///< Whether any cell is a finite number.
  long first_empty_line = 0;   ///< Line of the first empty cell; 0 when there is none.
  Index empty_cells = 0;
  bool only_key = false;  ///< Compared as written, never taken for a feature.
  std::string unit{};     ///< $, € or % beside every number; not part of it.
  std::string label{};    ///< Another name, by which the column is found where no column and no other label is like it.
  std::string fault{};    ///< Why its numbers cannot be used, thrown when they are asked for; empty: they can.

  [[nodiscard]] bool numeric() const { return first_text_line == 0; }
};

/// How a text file separates its cells and writes its numbers; the default is plain CSV.
struct TextFormat {
  char delimiter = ',';
  char decimal = '.';
  char thousands = 0;                ///< Between groups of three digits; 0: nothing.
  bool header_lacks_first = false;   ///< Rows begin with a field that the header has no name for.
  std::vector<std::string> units{};  ///< Of the fields of a row, for some or all of them; empty: none.

  auto operator<=>(const TextFormat&) const = default;
};

struct Table {
  std::string source;  ///< File name for messages.
  std::vector<Column> columns;
  Index rows = 0;
  TextFormat format{};
  std::string detected{};  ///< In words, how the file differs from plain CSV; empty: it does not.
  /// Where columns stood when note_places() was called; they may have changed since. Tables of 100,000 columns are
  /// searched for each of them.
  std::shared_ptr<const std::unordered_map<std::string, std::size_t>> places{};

  void note_places();
  /// By name, or by a label that only one column has; null: there is none. Throws BadData for a label of several.
  [[nodiscard]] const Column* find(const std::string& name) const;

  /// In order; of a column with a label "FITC-A (CD4)" if `with_labels`.
  [[nodiscard]] std::vector<std::string> names(bool with_labels = false) const;

  /// Throws BadData listing the existing columns.
  [[nodiscard]] const Column& column(const std::string& name) const;

  /// The numbers of a column; throws BadData naming line and cell when it holds anything else.
  [[nodiscard]] const std::vector<double>& numbers(const std::string& name) const;

  /// rows × names.size().
  [[nodiscard]] Matrix matrix(const std::vector<std::string>& names) const;
};

enum class KeepText { where_needed, always };

/// RFC 4180 with a header: quoted fields, LF, CRLF or CR, an optional byte order mark, blank lines at the end only.
/// What other programs write is recognised: semicolons, tabs, bars or spaces for commas, decimal commas, separated
/// thousands, signs of money and %, UTF-16 and Latin-1, lines of comments, an index column without a name and a row of
/// totals at the end (left out), gzip and zstd. `-` is standard input. Throws BadData (`features.csv:17: ...`) for what
/// cannot be a table, SystemFailure when the disk fails.
[[nodiscard]] Table read_csv(const std::string& path, KeepText keep_text = KeepText::where_needed);

/// As read_csv, from memory; `source` is its name in messages.
[[nodiscard]] Table parse_csv(const std::string& content, const std::string& source,
                              KeepText keep_text = KeepText::where_needed);

/// Rows from the middle of the file that `head` begins, numbers only; `first_line` is the line they begin on. Blank
/// lines are accepted where the file ends.
[[nodiscard]] Table parse_csv_rows(std::string_view lines, const Table& head, long first_line, bool file_ends);

/// Throws BadData saying why a file that begins with these bytes cannot be read in pieces by parse_csv_rows: it is
/// compressed, in another encoding, or has comments or an unnamed column.
void require_pieces(std::string_view bytes, const std::string& source);

/// The table as CSV; numbers in the fewest digits that read back to the same double.
[[nodiscard]] std::string to_csv(const Table& table);

/// One CSV field, quoted when it must be.
[[nodiscard]] std::string csv_field(const std::string& text);

/// The fewest digits that read back to the same double.
void append_number(std::string& out, double value);

}  // namespace unshuffle
